import { isKey } from 'webmq-client/protocol'

/**
 * How keys are written as subjects: `<namespace>.<key>`, with what NATS does not take, or takes for something else, written as
 * `%` and two hexadecimal digits; a word that is empty is written as `%` alone. Most keys have nothing of that.
 *
 * A quote and a backslash are no harm to NATS, but its errors would quote them. A `$` at the front is free for subjects that no key can have.
 */
const NEEDS_ESCAPE = /["%\\]|^\$|(?:^|\.)>?(?:\.|$)/
const ESCAPED_CHARACTER = /["%\\]/g
const ESCAPE = /%([0-9A-F]{2})/g
const EMPTY_WORD = '%'

/** Keys remembered by their subjects. */
const MAX_CACHED_KEYS = 16_384

/** Translates between keys and patterns of one namespace and subjects of NATS. Different keys have different subjects. */
export class NatsSubjects {
  /** What all subjects begin with. */
  readonly prefix: string
  readonly #nodePrefix: string
  readonly #keys = new Map<string, string>()

  /** @param namespace `[A-Za-z0-9_-]{1,64}` */
  constructor(namespace: string) {
    this.prefix = `${namespace}.`
    this.#nodePrefix = `${namespace}.$node.`
  }

  /** A subject for a node's own use, which is that of no key. Patterns that match everything bring its messages, too. */
  ofNode(node: string): string {
    return `${this.#nodePrefix}${node}`
  }

  /** Whether a subject is one of {@link ofNode}. */
  isOfNode(subject: string): boolean {
    return subject.startsWith(this.#nodePrefix)
  }

  /** At most three times as long as the key, behind the namespace. */
  ofKey(key: string): string {
    return this.prefix + escaped(key)
  }

  /**
   * The subject that brings what a reach matches.
   * @param reach One of {@link reachesOf}.
   */
  ofReach(reach: string): string {
    // `a.*.#` is at least one word after `a`, which is what `a.>` means.
    if (reach === '*.#') return `${this.prefix}>`
    return reach.endsWith('.*.#') ? `${this.ofKey(reach.slice(0, -4))}.>` : this.ofKey(reach)
  }

  /**
   * The key that has this subject; `undefined` when none has.
   * @param latin1 The subject, each byte of its UTF-8 as one character.
   */
  keyOf(latin1: string): string | undefined {
    const cached = this.#keys.get(latin1)
    if (cached !== undefined) return cached
    if (!latin1.startsWith(this.prefix)) return undefined
    const key = unescaped(Buffer.from(latin1.slice(this.prefix.length), 'latin1').toString())
    // There is one way to write a key: what is written in another way does not come to those who listen with that key.
    if (!isKey(key) || Buffer.from(this.ofKey(key)).toString('latin1') !== latin1) return undefined
    if (this.#keys.size >= MAX_CACHED_KEYS) this.#keys.clear()
    this.#keys.set(latin1, key)
    return key
  }
}

/**
 * What a pattern needs to be subscribed to, as patterns that NATS can express: no `#`, or one at the end behind a `*`. Together they
 * bring every key that the pattern matches. They bring more only when words follow a `#`: `a.#.b` needs all of `a.*.#`.
 */
export function reachesOf(pattern: string): readonly string[] {
  const words = pattern.split('.')
  const hashAt = words.indexOf('#')
  if (hashAt < 0) return [pattern]
  const before = words.slice(0, hashAt)
  const leastAfter = words.slice(hashAt).filter((word) => word !== '#').length
  const atLeastOne = (stars: number) => [...before, ...new Array<string>(stars).fill('*'), '#'].join('.')
  if (leastAfter > 0) return [atLeastOne(leastAfter)]
  if (before.length === 0) return [atLeastOne(1)]
  // A `*` before the `#` is the one word that there must be at least; without it, there may be none.
  return before.at(-1) === '*' ? [atLeastOne(0)] : [before.join('.'), atLeastOne(1)]
}

function escaped(text: string): string {
  if (!NEEDS_ESCAPE.test(text)) return text
  return text
    .split('.')
    .map((word, index) => {
      if (word === '') return EMPTY_WORD
      if (word === '>') return hex(word)
      const rest = word.replace(ESCAPED_CHARACTER, hex)
      return index === 0 && rest.startsWith('$') ? `${hex('$')}${rest.slice(1)}` : rest
    })
    .join('.')
}

function hex(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

function unescaped(text: string): string {
  if (!text.includes('%')) return text
  return text
    .split('.')
    .map((word) =>
      word === EMPTY_WORD
        ? ''
        : word.replace(ESCAPE, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    )
    .join('.')
}
