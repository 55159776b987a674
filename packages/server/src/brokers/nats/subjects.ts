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

/** Subjects whose keys are remembered. */
const MAX_CACHED_SUBJECTS = 16_384

/** Translates between keys and patterns of one namespace and subjects of NATS. Different keys have different subjects. */
export class NatsSubjects {
  /** What all subjects begin with. */
  readonly prefix: string
  /** What is said of the log to all who follow it; that of no key. */
  readonly ofLog: string
  readonly #ownPrefix: string
  readonly #keys = new Map<string, string>()

  /** @param namespace `[A-Za-z0-9_-]{1,64}` */
  constructor(namespace: string) {
    this.prefix = `${namespace}.`
    this.ofLog = `${namespace}.$log`
    this.#ownPrefix = `${namespace}.$`
  }

  /** A subject for a node's own use, which is that of no key. Patterns that match everything bring its messages, too. */
  ofNode(node: string): string {
    return `${this.prefix}$node.${node}`
  }

  /** Whether a subject is for the use of nodes: {@link ofNode}, {@link ofLog}. */
  isOwn(subject: string): boolean {
    return subject.startsWith(this.#ownPrefix)
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

  /** The key of a subject; `undefined` when it is that of none. */
  keyOf(subject: string): string | undefined {
    const known = this.#keys.get(subject)
    if (known !== undefined) return known
    if (!subject.startsWith(this.prefix)) return undefined
    const key = unescaped(subject.slice(this.prefix.length))
    // There is one way to write a key. Another does not reach those who listen with that key.
    if (!isKey(key) || this.ofKey(key) !== subject) return undefined
    if (this.#keys.size >= MAX_CACHED_SUBJECTS) this.#keys.clear()
    this.#keys.set(subject, key)
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
