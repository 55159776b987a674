import { didYouMean } from './closest-name.js'
import { WebMQError } from './errors.js'
import { withArticle } from './with-article.js'

/** What `typeof` says of a value, or the texts that it may be; `true`: whoever uses it looks at it. */
type Kind = true | 'boolean' | 'function' | 'number' | 'object' | 'string' | readonly string[]

/** The options `O`: the compiler demands all of them, and no others. */
export type OptionKinds<O> = { readonly [N in keyof Required<O>]: Kind }

/**
 * Checks the names and the kinds of options: a misspelt one would have no effect, in silence.
 * @param place What the message says before the name: `reconnect.`.
 * @throws {WebMQError} `E_OPTION_INVALID`, with the name that may be meant.
 */
export function assertOptions(place: string, options: object, kinds: OptionKinds<Record<string, unknown>>): void {
  if (typeof options !== 'object' || options === null) throw refusal(`${place}its options are no object`)
  // For each message of a batch: it makes no list of the names.
  for (const name in options) {
    const kind = kinds[name]
    if (kind === true) continue
    if (!Object.hasOwn(kinds, name) || kind === undefined)
      throw refusal(`${place}${name}: unknown option${didYouMean(name, Object.keys(kinds))}`)
    const value: unknown = options[name as keyof typeof options]
    if (value == null) continue
    if (typeof kind === 'object' && !kind.includes(value as string))
      throw refusal(`${place}${name} ${String(value)}: one of ${kind.join(', ')}`)
    if (typeof kind === 'string' && typeof value !== kind)
      throw refusal(`${place}${name}: it is not ${withArticle(kind)}`)
  }
}

function refusal(detail: string): WebMQError {
  return new WebMQError('E_OPTION_INVALID', { detail })
}
