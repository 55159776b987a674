import type { ClientMessage } from 'webmq-client/protocol'
import { copyBytes } from '../ports/copy-bytes.js'

/** A message that waits for an earlier one of its connection. */
export interface WaitingMessage {
  readonly message: ClientMessage
  readonly isBinary: boolean
}

/** Most waiting messages. */
const MAX_WAITING_MESSAGES = 1_024

/** Messages of a connection that wait behind one which waits for the verifier or the broker; in order, bounded. */
export class Inbox {
  readonly #messages: WaitingMessage[] = []
  readonly #maxBytes: number
  #byteCount = 0

  /** @param maxBytes Most bytes of waiting payloads. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Keeps a message and copies its payload; `false` when there is no room. */
  push(message: ClientMessage, isBinary: boolean): boolean {
    const byteCount = message.verb === 'publish' ? message.payload.length : 0
    if (this.#messages.length >= MAX_WAITING_MESSAGES || this.#byteCount + byteCount > this.#maxBytes) return false
    this.#byteCount += byteCount
    this.#messages.push({ message: kept(message), isBinary })
    return true
  }

  /** Removes the oldest message. */
  shift(): WaitingMessage | undefined {
    const waiting = this.#messages.shift()
    if (waiting?.message.verb === 'publish') this.#byteCount -= waiting.message.payload.length
    return waiting
  }
}

function kept(message: ClientMessage): ClientMessage {
  if (message.verb !== 'publish' || typeof message.payload === 'string') return message
  return { ...message, payload: copyBytes(message.payload) }
}
