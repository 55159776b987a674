import { formatOffset, type GapReason, matches, parseOffset, type WirePayload } from '../protocol/index.js'

/** A message that was published to the double. */
export interface LoggedMessage {
  readonly key: string
  readonly payload: WirePayload
  readonly offset: number
}

/** What a listen gets from the log. */
export interface Replayed {
  readonly messages: readonly LoggedMessage[]
  readonly gap?: GapReason
}

/** The broker's log of the double: the newest messages, each with a position. */
export class TestLog {
  readonly #maxMessages: number
  #messages: LoggedMessage[] = []
  #epoch = 1
  #offset = 0

  constructor(maxMessages: number) {
    this.#maxMessages = maxMessages
  }

  /** What positions begin with, up to their `:`. */
  get epoch(): string {
    return `epoch${this.#epoch}`
  }

  /** Position of the newest message, or of this one; `undefined` when no log is kept. */
  position(offset = this.#offset): string | undefined {
    return this.#maxMessages > 0 ? `${this.epoch}:${formatOffset(offset)}` : undefined
  }

  append(key: string, payload: WirePayload): LoggedMessage {
    const message = { key, payload, offset: ++this.#offset }
    this.#messages.push(message)
    this.#messages.splice(0, this.#messages.length - this.#maxMessages)
    return message
  }

  /** Loses what it holds, as when time has passed: the next resume finds `history-expired`. */
  expire(): void {
    this.#messages = []
    this.#offset++
  }

  /** Begins anew, as when the broker was replaced: the next resume finds `epoch-changed`. */
  restart(): void {
    this.#messages = []
    this.#epoch++
    this.#offset = 0
  }

  since(position: string, pattern: string): Replayed {
    const messages = this.#messages.filter(({ key }) => matches(pattern, key))
    if (this.#maxMessages === 0) return { messages: [], gap: 'no-history' }
    const [epoch, text = ''] = position.split(':')
    if (epoch !== this.epoch) return { messages, gap: 'epoch-changed' }
    const offset = parseOffset(text) ?? 0
    const newer = messages.filter((message) => message.offset > offset)
    const isComplete = offset >= this.#offset - this.#messages.length
    return isComplete ? { messages: newer } : { messages: newer, gap: 'history-expired' }
  }

  last(count: number, pattern: string): Replayed {
    const messages = this.#messages.filter(({ key }) => matches(pattern, key))
    return { messages: messages.slice(Math.max(0, messages.length - count)) }
  }
}
