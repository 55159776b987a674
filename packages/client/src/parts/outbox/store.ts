import type { WirePayload } from '../../protocol/messages.js'

/** A message that waits in the outbox. */
export interface OutboxMessage {
  readonly id: string
  readonly key: string
  readonly payload: WirePayload
  /** Length of the payload on the wire. */
  readonly bytes: number
  /** Unix time, because it is compared after a reload. */
  readonly createdAtMs: number
  /** When it was first sent without an answer: the server may have it, and knows its id for a limited time. */
  readonly attemptedAtMs?: number | undefined
}

/** A message with its place in the order. */
export interface StoredMessage extends OutboxMessage {
  readonly place: number
}

/** Limits of what is stored. */
export interface StoreLimits {
  readonly maxMessages: number
  readonly maxBytes: number
}

/** Keeps messages over a reload. Each method is one transaction: it resolves when its change is on disk. */
export interface OutboxStore {
  /**
   * Adds a message at the end. One with the same key and id is there already: nothing changes.
   * @throws {WebMQError} `E_QUEUE_FULL`: the limits, or the space of the browser.
   */
  add(message: OutboxMessage, limits: StoreLimits): Promise<void>
  /** All messages, the oldest first. */
  list(): Promise<readonly StoredMessage[]>
  count(): Promise<number>
  /** Notes when a message was first sent; `undefined`: the server has certainly not taken it. */
  mark(place: number, attemptedAtMs: number | undefined): Promise<void>
  remove(place: number): Promise<void>
  close(): void
}
