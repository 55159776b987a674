import { invalid } from '../core/options.js'
import { didYouMean } from '../protocol/closest-name.js'

/** The names of the options `O`: the compiler demands all of them, and no others. */
export const namesOf = <O>(names: { readonly [N in keyof Required<O>]: true }): readonly string[] => Object.keys(names)

/**
 * Checks the names of options: a misspelt one would have no effect, in silence.
 * @param place What the message says before the name: `reconnect.`.
 * @throws {WebMQError} `E_OPTION_INVALID`, with the name that may be meant.
 */
export function checkNames(place: string, options: object, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw invalid(`${place}its options are no object`)
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw invalid(`${place}${name}: unknown option${didYouMean(name, names)}`)
  }
}
