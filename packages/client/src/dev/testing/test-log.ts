import { matches } from '../../protocol/matching.js'
import type { GapReason, WirePayload } from '../../protocol/messages.js'
import type { MessageMeta } from '../../protocol/meta.js'
import { formatPosition, type MessagePosition, parsePosition } from '../../protocol/position.js'

/** A message that the test server sends to connections. */
export interface SentMessage {
  readonly key: string
  readonly payload: WirePayload
  /** Absent if the message is not logged. */
  readonly offset?: number
  /** For connections that ask for it. */
  readonly meta?: MessageMeta
}

/** A message that was published to the test server. */
export interface LoggedMessage extends SentMessage {
  readonly offset: number
  /** Unix time in milliseconds. */
  readonly timeMs: number
}

/** Selection of messages, as on the wire. */
export interface LogRange {
  readonly since?: string | undefined
  readonly before?: string | undefined
  readonly rewindMs?: number | undefined
  readonly last?: number | undefined
  /** Only the oldest N. */
  readonly limit?: number | undefined
}

/** Answer of the log to a request. */
export interface Replayed {
  readonly messages: readonly LoggedMessage[]
  /** The messages are complete up to here; absent if no log is kept. */
  readonly position?: string | undefined
  readonly more: boolean
  readonly gap?: GapReason | undefined
  /** Fewer than `last` came, and the log no longer has older messages. */
  readonly isCut?: boolean
}

/** The test server's log: the newest messages, each with a position. */
export class TestLog {
  readonly #maxMessages: number
  #messages: LoggedMessage[] = []
  /** The last message of each key, in the order of offsets. Without a payload, the key was removed. */
  readonly #last = new Map<string, LoggedMessage>()
  /** Whoever has the state of this offset learns of every removal. */
  #removalsAfter = 0
  #epoch = 1
  #offset = 0

  constructor(maxMessages: number) {
    this.#maxMessages = maxMessages
  }

  /** The part of positions before their `:`. */
  get epoch(): string {
    return `epoch${this.#epoch}`
  }

  /** Position of the newest message, or of this offset; `undefined` if no log is kept. */
  position(offset = this.#offset): string | undefined {
    return this.#maxMessages > 0 ? formatPosition(this.place(offset)) : undefined
  }

  /** The same, not as text. Nothing else is ever at an offset, so all have one fingerprint. */
  place(offset: number): MessagePosition {
    return { epoch: this.epoch, offset, fingerprint: 0 }
  }

  append(key: string, payload: WirePayload, meta?: MessageMeta): LoggedMessage {
    const message = { key, payload, ...(meta && { meta }), offset: ++this.#offset, timeMs: Date.now() }
    this.#messages.push(message)
    this.#messages.splice(0, this.#messages.length - this.#maxMessages)
    this.#last.delete(key)
    this.#last.set(key, message)
    return message
  }

  /** Loses its messages, as when time has passed: the next resume gets `history-expired`. */
  expire(): void {
    this.#messages = []
    this.#offset++
    for (const [key, { payload }] of this.#last) if (payload.length === 0) this.#last.delete(key)
    this.#removalsAfter = this.#offset
  }

  /** Starts anew, as with a replaced broker: the next resume gets `epoch-changed`. */
  restart(): void {
    this.#messages = []
    this.#last.clear()
    this.#removalsAfter = 0
    this.#epoch++
    this.#offset = 0
  }

  /** Reads the last message of each key; with `since`, of keys that changed after it. */
  state({ since, limit }: Pick<LogRange, 'since' | 'limit'>, pattern: string): Replayed {
    const { epoch, offset } = (since === undefined ? undefined : parsePosition(since)) ?? this.place(0)
    const isKnown = since === undefined || offset >= this.#removalsAfter
    const gap = epoch !== this.epoch ? 'epoch-changed' : isKnown ? undefined : 'history-expired'
    if (gap !== undefined) return { messages: [], more: false, gap, position: this.position() }
    const found = [...this.#last.values()].filter((message) => message.offset > offset && matches(pattern, message.key))
    const messages = found.slice(0, limit)
    const more = messages.length < found.length
    return { messages, more, gap, position: this.position(more ? messages.at(-1)?.offset : undefined) }
  }

  /** Reads the selected messages, oldest first. */
  read({ since, before, rewindMs, last, limit }: LogRange, pattern: string): Replayed {
    if (this.#maxMessages === 0) return { messages: [], more: false, gap: 'no-history' }
    const from = since === undefined ? undefined : parsePosition(since)
    const offset = from?.epoch === this.epoch ? from.offset : 0
    const fromMs = rewindMs === undefined ? 0 : Date.now() - rewindMs
    const endPlace = before === undefined ? undefined : parsePosition(before)
    const endEpoch = before === undefined ? this.epoch : endPlace?.epoch
    const end = before === undefined ? Number.POSITIVE_INFINITY : (endPlace?.offset ?? 0)
    const found = this.#messages.filter(
      (message) =>
        endEpoch === this.epoch &&
        message.offset < end &&
        message.offset > offset &&
        message.timeMs >= fromMs &&
        matches(pattern, message.key),
    )
    const selected = found.slice(Math.max(0, found.length - (last ?? found.length)))
    const messages = selected.slice(0, limit)
    const more = messages.length < selected.length
    const isComplete = since === undefined || offset >= this.#offset - this.#messages.length
    const isForeign = (since !== undefined && from?.epoch !== this.epoch) || endEpoch !== this.epoch
    const gap = isForeign ? 'epoch-changed' : isComplete ? undefined : 'history-expired'
    const isCut = messages.length < (last ?? 0) && this.#offset > this.#messages.length
    return { messages, more, gap, isCut, position: this.position(more ? messages.at(-1)?.offset : undefined) }
  }
}
