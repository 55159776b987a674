import { isKey, MAX_KEY_BYTES } from 'webmq-client/protocol'

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

/**
 * Keys are remembered by a few bits of their subjects; those that fall together push each other out. To compare bytes costs half of what
 * it takes to make a text of them and look that up.
 */
const SLOT_BITS = 14
const SLOT_COUNT = 2 ** SLOT_BITS

const DOT = 0x2e
/** 1 for the bytes of ASCII that stand for themselves in a subject wherever they stand, and the dot. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  /^[!-~]$/.test(String.fromCharCode(byte)) && !'"%\\*#>$'.includes(String.fromCharCode(byte)) ? 1 : 0,
)

/** Translates between keys and patterns of one namespace and subjects of NATS. Different keys have different subjects. */
export class NatsSubjects {
  /** What all subjects begin with. */
  readonly prefix: string
  /** What is said of the log to all who follow it; that of no key. */
  readonly ofLog: string
  readonly #ownPrefix: string
  readonly #known = new Array<KnownKey | undefined>(SLOT_COUNT).fill(undefined)

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

  /**
   * The key of a subject as it came; `undefined` when it is that of none.
   * @param start Where it begins in the bytes, and where it ends.
   */
  keyIn(bytes: Buffer, start: number, end: number): string | undefined {
    const slot = slotOf(bytes, start + this.prefix.length, end)
    const known = this.#known[slot]
    if (known !== undefined && isAt(known.subject, bytes, start, end)) return known.key
    const subject = Buffer.from(bytes.subarray(start, end))
    const key = this.#plainKey(subject) ?? this.#anyKey(subject)
    if (key !== undefined) this.#known[slot] = { subject, key }
    return key
  }

  /** The key, when it is written as it is and all of it is ASCII. A seventh of the time that it takes to look at it as a text. */
  #plainKey(subject: Buffer): string | undefined {
    const { length } = subject
    const { length: start } = this.prefix
    if (length <= start || length - start > MAX_KEY_BYTES) return undefined
    let previous = DOT
    for (let at = start; at < length; at++) {
      const byte = subject[at] as number
      if (PLAIN[byte] === 0 || (byte === DOT && previous === DOT)) return undefined
      previous = byte
    }
    const text = subject.toString('latin1')
    return previous !== DOT && text.startsWith(this.prefix) ? text.slice(start) : undefined
  }

  #anyKey(subject: Buffer): string | undefined {
    const text = subject.toString()
    if (!text.startsWith(this.prefix)) return undefined
    const key = unescaped(text.slice(this.prefix.length))
    // There is one way to write a key: what is written in another way does not come to those who listen with that key.
    return isKey(key) && Buffer.from(this.ofKey(key)).equals(subject) ? key : undefined
  }
}

/** A key that has come before. */
interface KnownKey {
  readonly subject: Buffer
  readonly key: string
}

function slotOf(bytes: Buffer, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at++) hash = Math.imul(hash, 31) + (bytes[at] as number)
  return (hash ^ (hash >>> SLOT_BITS)) & (SLOT_COUNT - 1)
}

function isAt(subject: Buffer, bytes: Buffer, start: number, end: number): boolean {
  const { length } = subject
  if (length !== end - start) return false
  for (let index = 0; index < length; index++) if (subject[index] !== bytes[start + index]) return false
  return true
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
