import { isKey } from 'webmq-client/protocol'

/**
 * The subject of a key is `<namespace>.<key>`. Characters that NATS does not allow or treats specially become `%` and
 * two hexadecimal digits; an empty word becomes `%`. Most keys need no escape.
 *
 * Quotes and backslashes are escaped because NATS quotes them in errors. A leading `$` is escaped because it marks
 * subjects that are not keys.
 */
const NEEDS_ESCAPE = /["%\\]|^\$|(?:^|\.)>?(?:\.|$)/
const ESCAPED_CHARACTER = /["%\\]/g
const ESCAPE = /%([0-9A-F]{2})/g
const EMPTY_WORD = '%'

const MAX_CACHED_SUBJECTS = 16_384

/**
 * Translates keys and patterns of one namespace to subjects of NATS, and subjects to keys. Different keys have
 * different subjects.
 */
export class NatsSubjects {
  /** All subjects begin with it. */
  readonly prefix: string
  /** Subject of notes to all nodes that follow the log; not the subject of any key. */
  readonly ofLog: string
  readonly #ownPrefix: string
  readonly #keys = new Map<string, string>()

  /** @param namespace `[A-Za-z0-9_-]{1,64}` */
  constructor(namespace: string) {
    this.prefix = `${namespace}.`
    this.ofLog = `${namespace}.$log`
    this.#ownPrefix = `${namespace}.$`
  }

  /** A node's own subject, not the subject of any key. Patterns that match everything also match it. */
  ofNode(node: string): string {
    return `${this.prefix}$node.${node}`
  }

  /** Whether a subject is reserved for nodes: {@link ofNode}, {@link ofLog}. */
  isOwn(subject: string): boolean {
    return subject.startsWith(this.#ownPrefix)
  }

  /** The key's part is at most three times as long as the key. */
  ofKey(key: string): string {
    return this.prefix + escaped(key)
  }

  /** @param pattern One of {@link subscriptionPatternsOf}. */
  ofSubscription(pattern: string): string {
    // `a.*.#` needs at least one word after `a`, as `a.>` does.
    if (pattern === '*.#') return `${this.prefix}>`
    return pattern.endsWith('.*.#') ? `${this.ofKey(pattern.slice(0, -4))}.>` : this.ofKey(pattern)
  }

  keyOf(subject: string): string | undefined {
    const known = this.#keys.get(subject)
    if (known !== undefined) return known
    if (!subject.startsWith(this.prefix)) return undefined
    const key = unescaped(subject.slice(this.prefix.length))
    // A key has exactly one subject: other spellings of it are not delivered to listeners of the key.
    if (!isKey(key) || this.ofKey(key) !== subject) return undefined
    if (this.#keys.size >= MAX_CACHED_SUBJECTS) this.#keys.clear()
    this.#keys.set(subject, key)
    return key
  }
}

/**
 * The subscriptions that NATS needs for a pattern, each as a subscription pattern that NATS can express: no `#`, or one
 * at the end after a `*`. Together they bring every key that the pattern matches. They bring more only if words follow
 * a `#`: `a.#.b` needs `a.*.#`.
 */
export function subscriptionPatternsOf(pattern: string): readonly string[] {
  const words = pattern.split('.')
  const hashAt = words.indexOf('#')
  if (hashAt < 0) return [pattern]
  const before = words.slice(0, hashAt)
  const leastAfter = words.slice(hashAt).filter((word) => word !== '#').length
  const atLeastOne = (stars: number) => [...before, ...new Array<string>(stars).fill('*'), '#'].join('.')
  if (leastAfter > 0) return [atLeastOne(leastAfter)]
  if (before.length === 0) return [atLeastOne(1)]
  // A `*` before the `#` requires at least one word; without it, `#` may match none.
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

/*
 * NATS refuses a stream if two of its subjects match the same message.
 */

/**
 * Disjoint subjects that together match everything the given subjects match. They match more only where two given
 * subjects overlap and neither contains the other: `a.*` and `*.b` become `*.*`.
 * @param subjects With `*`, and `>` at the end.
 */
export function disjointSubjects(subjects: readonly string[]): string[] {
  const disjoint: string[] = []
  for (const subject of subjects) {
    let joined = subject
    for (let at = 0; at < disjoint.length; ) {
      const other = disjoint[at] as string
      if (overlap(joined, other)) {
        joined = join(joined, other)
        disjoint.splice(at, 1)
        at = 0
      } else at++
    }
    disjoint.push(joined)
  }
  return disjoint.sort()
}

function overlap(one: string, other: string): boolean {
  const [words, others] = [one.split('.'), other.split('.')]
  for (let at = 0; at < words.length && at < others.length; at++) {
    const [word, otherWord] = [words[at], others[at]]
    if (word === '>' || otherWord === '>') return true
    if (word !== otherWord && word !== '*' && otherWord !== '*') return false
  }
  return words.length === others.length
}

/** The narrowest subject that contains two overlapping ones. */
function join(one: string, other: string): string {
  const [words, others] = [one.split('.'), other.split('.')]
  const joined: string[] = []
  for (const [at, word] of words.entries()) {
    if (word === '>' || others[at] === '>') return [...joined, '>'].join('.')
    joined.push(word === others[at] ? word : '*')
  }
  return joined.join('.')
}
