import type { ClientMessage } from 'webmq-client/protocol'
import { copyBytes } from '../base/copy-bytes.js'
import type { Behind } from '../publishing/author.js'
import { isRangeAsked } from '../replay/replay.js'

export interface WaitingMessage {
  readonly message: ClientMessage
  readonly isBinary: boolean
  /** `performance.now()`. */
  readonly arrivedMs: number
}

const MAX_WAITING_MESSAGES = 1_024
/** Memory of a waiting message beside its texts and payload: three objects and their places. An estimate. */
const OVERHEAD_BYTES = 384
/** Units of work per message that is looked at. Measured: 0.23 us. */
const HELD_UNITS = 0.25
/** Replays in progress. Further requests for one wait. */
const MAX_REPLAYS = 128

/**
 * The messages of a connection that are in progress or wait, in order and bounded. While the verifier or the broker
 * takes its time over a message, all later ones wait. Two kinds hold less:
 *
 * - `publish` holds nothing, because the broker keeps the order.
 * - A request for a replay, which may wait for the connection itself, holds only requests that name the same pattern or
 *   key, and publishes that its listen might miss: those that are not logged. Of a pattern only the words before the
 *   first wildcard count. Matching 1,024 keys with 128 patterns made to backtrack took 40 s.
 */
export class Inbox {
  readonly #isLogged: (key: string) => boolean
  readonly #running = new Set<ClientMessage>()
  readonly #waiting: WaitingMessage[] = []
  /** Of the waiting ones, those that are no {@link isReplay}. */
  #otherCount = 0
  #byteCount = 0
  /** Whether {@link release} may find something: since the last one a message has ended, or it was stopped. */
  isDue = false
  /** Things that all messages wait for. */
  #shutCount = 0
  /** Told of the bytes of each message that arrives while {@link shut}; one at a time. */
  #behind: Behind | undefined
  /** Whether the message that all others wait for has been refused: a gate refuses them, too. */
  isRefused = false
  /** All that are in progress or wait. */
  readonly #ahead = new MessagesAhead()
  /** Those that come before the message that {@link release} looks at. */
  #before: MessagesAhead | undefined

  /** @param isLogged Whether a replay contains the messages of this key. */
  constructor(isLogged: (key: string) => boolean) {
    this.#isLogged = isLogged
  }

  get isEmpty(): boolean {
    return !this.#isShut && this.#running.size === 0 && this.#waiting.length === 0
  }

  /** All messages wait until {@link open}: a hook takes its time, or the broker. Each call has its own {@link open}. */
  shut(behind?: Behind): void {
    this.#shutCount++
    this.#behind ??= behind
  }

  /** Ends a {@link shut}. {@link release} those that waited. */
  open(behind?: Behind): void {
    this.#shutCount--
    if (behind !== undefined && behind === this.#behind) {
      this.#behind = undefined
      this.isRefused = false
    }
    this.isDue = true
  }

  get #isShut(): boolean {
    return this.#shutCount > 0
  }

  holds(message: ClientMessage): boolean {
    return this.#isHeld(message, this.#ahead)
  }

  /**
   * Keeps a message and copies its payload; `false` when there is no room: see {@link isRefused}.
   * @param maxBytes Most memory of waiting messages.
   */
  push(message: ClientMessage, isBinary: boolean, maxBytes: number): boolean {
    const byteCount = byteCountOf(message)
    const isFull = this.#waiting.length >= MAX_WAITING_MESSAGES || this.#byteCount + byteCount > maxBytes
    this.isRefused = this.#behind?.(isFull ? Number.POSITIVE_INFINITY : byteCount) === true
    if (isFull) return false
    const waiting = { message: kept(message), isBinary, arrivedMs: performance.now() }
    this.#waiting.push(waiting)
    this.#count(waiting.message, 1)
    return true
  }

  began(message: ClientMessage): void {
    this.#running.add(message)
    this.#ahead.countRunning(message, 1)
    this.#before?.countRunning(message, 1)
  }

  /** A message is no longer in progress. {@link release} those that waited for it. */
  ended(message: ClientMessage): void {
    if (this.#running.delete(message)) this.#ahead.countRunning(message, -1)
    this.isDue = true
  }

  /**
   * Passes the messages that nothing holds any more to `handle`, in order.
   * @param mayGoOn Asked before each message that nothing holds. After a `false` the rest waits on, for the next call:
   *   {@link isDue}.
   * @returns Units of work, without what `handle` costs: it looks at the messages in progress, and at those that wait up to the
   *   one behind which none can go on.
   */
  release(handle: (waiting: WaitingMessage) => void, mayGoOn: () => boolean): number {
    const before = new MessagesAhead()
    for (const running of this.#running) before.countRunning(running, 1)
    this.#before = before
    const waiting = this.#waiting
    const held: WaitingMessage[] = []
    this.isDue = false
    let place = 0
    while (place < waiting.length && !this.isDue && !this.#holdsRest(before)) {
      const next = waiting[place] as WaitingMessage
      const isHeld = this.#isHeld(next.message, before)
      if (!isHeld && !mayGoOn()) {
        this.isDue = true
        break
      }
      place++
      if (isHeld) {
        held.push(next)
        before.count(next.message, 1)
      } else {
        this.#count(next.message, -1)
        handle(next)
      }
    }
    this.#before = undefined
    waiting.splice(0, place, ...held)
    return (this.#running.size + place) * HELD_UNITS
  }

  #isHeld(message: ClientMessage, ahead: MessagesAhead): boolean {
    return this.#isShut || (this.#hasAllReplays && isReplay(message)) || ahead.hold(message, this.#isLogged)
  }

  /** Whether all that come next wait, too. */
  #holdsRest(before: MessagesAhead): boolean {
    return this.#isShut || before.holdsAll || (this.#hasAllReplays && this.#otherCount === 0)
  }

  get #hasAllReplays(): boolean {
    return this.#running.size >= MAX_REPLAYS
  }

  /** Counts a message that waits from now on, or no longer. */
  #count(message: ClientMessage, by: 1 | -1): void {
    this.#byteCount += by * byteCountOf(message)
    if (!isReplay(message)) this.#otherCount += by
    this.#ahead.count(message, by)
  }
}

/** Summary of the earlier messages that a message may have to wait for. */
class MessagesAhead {
  #holdAllCount = 0
  #publishCount = 0
  readonly #names = new Counts()
  /** Patterns of listens whose replay contains logged messages, up to the first wildcard. */
  readonly #replayedPrefixes = new Counts()
  /** The same of all others. */
  readonly #livePrefixes = new Counts()

  /** Whether every message waits for one of them. */
  get holdsAll(): boolean {
    return this.#holdAllCount > 0
  }

  /** Adds a message, or takes it away. */
  count(message: ClientMessage, by: 1 | -1): void {
    const name = nameOf(message)
    if (name !== undefined) this.#names.add(name, by)
    if (message.verb === 'listen') {
      const prefixes = isRangeAsked(message) ? this.#replayedPrefixes : this.#livePrefixes
      prefixes.add(beforeWildcard(message.pattern), by)
    }
    // Keeps publishes in order, and the cost of a check low.
    else if (message.verb === 'publish') this.#publishCount += by
    else if (name === undefined) this.#holdAllCount += by
  }

  /** The same for one that is in progress. */
  countRunning(message: ClientMessage, by: 1 | -1): void {
    if (isReplay(message)) this.count(message, by)
    else this.#holdAllCount += by
  }

  hold(message: ClientMessage, isLogged: (key: string) => boolean): boolean {
    if (this.holdsAll) return true
    if (message.verb === 'publish') {
      // No replay contains an ephemeral message.
      const isInReplay = (key: string) => message.ephemeral !== true && isLogged(key)
      return this.#publishCount > 0 || this.#isMissed(message.key, isInReplay)
    }
    const name = nameOf(message)
    return name !== undefined && this.#names.has(name)
  }

  /** Whether a listen that has not begun might miss a publish to this key. */
  #isMissed(key: string, isLogged: (key: string) => boolean): boolean {
    return hasPrefixOf(key, this.#livePrefixes) || (hasPrefixOf(key, this.#replayedPrefixes) && !isLogged(key))
  }
}

/** How often each text was added. */
class Counts {
  readonly #counts = new Map<string, number>()

  get size(): number {
    return this.#counts.size
  }

  has(text: string): boolean {
    return this.#counts.has(text)
  }

  add(text: string, by: 1 | -1): void {
    const count = (this.#counts.get(text) ?? 0) + by
    if (count > 0) this.#counts.set(text, count)
    else this.#counts.delete(text)
  }
}

/** Whether one of the prefixes, as of {@link beforeWildcard}, begins the key. Cost: O(words of the key). */
function hasPrefixOf(key: string, prefixes: Pick<ReadonlySet<string>, 'size' | 'has'>): boolean {
  if (prefixes.size === 0) return false
  // `a.#` matches `a` and `a.b`, but not `ab`: with an end of its own, each key begins with `a.` if it matches.
  const ended = `${key}${END}`
  if (prefixes.has('') || prefixes.has(ended)) return true
  for (let dot = ended.indexOf('.'); dot >= 0; dot = ended.indexOf('.', dot + 1)) {
    if (prefixes.has(ended.slice(0, dot + 1))) return true
  }
  return false
}

/** No key contains a line feed. */
const END = '.\n'

/** The words of a pattern before its first wildcard, each with a dot behind it; the whole pattern if it has none. */
function beforeWildcard(pattern: string): string {
  // A wildcard is a word of its own: no other word contains its character.
  const star = pattern.indexOf('*')
  const hash = pattern.indexOf('#')
  if (star < 0 && hash < 0) return `${pattern}${END}`
  return pattern.slice(0, star < 0 || (hash >= 0 && hash < star) ? hash : star)
}

function isReplay(message: ClientMessage): boolean {
  return message.verb === 'history' || message.verb === 'read' || (message.verb === 'listen' && isRangeAsked(message))
}

/** The pattern or key whose requests keep their order. */
function nameOf(message: ClientMessage): string | undefined {
  switch (message.verb) {
    case 'listen':
    case 'unlisten':
      return message.pattern
    case 'history':
    case 'read':
      return message.key
    default:
      return undefined
  }
}

/** Memory that a waiting message takes. A text takes one or two bytes per character; two are counted. */
function byteCountOf(message: ClientMessage): number {
  let byteCount = OVERHEAD_BYTES
  for (const name in message) {
    const value: unknown = message[name as keyof ClientMessage]
    if (typeof value === 'string') byteCount += 2 * value.length
    else if (value instanceof Uint8Array) byteCount += value.length
  }
  return byteCount
}

/** The message with a payload of its own. */
export function kept(message: ClientMessage): ClientMessage {
  if (!('payload' in message) || typeof message.payload === 'string') return message
  return { ...message, payload: copyBytes(message.payload) }
}
