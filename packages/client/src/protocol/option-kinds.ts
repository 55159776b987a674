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
  const refuse = (detail: string) => new WebMQError('E_OPTION_INVALID', { detail: place + detail })
  if (typeof options !== 'object' || options === null) throw refuse('its options are no object')
  for (const [name, value] of Object.entries(options)) {
    const kind = Object.hasOwn(kinds, name) && kinds[name]
    if (!kind) throw refuse(`${name}: unknown option${didYouMean(name, Object.keys(kinds))}`)
    if (kind === true || value == null) continue
    if (typeof kind === 'object' && !kind.includes(value))
      throw refuse(`${name} ${String(value)}: one of ${kind.join(', ')}`)
    if (typeof kind === 'string' && typeof value !== kind) throw refuse(`${name}: it is not ${withArticle(kind)}`)
  }
}
