import type { KnownKey, PayloadInput, Topics } from '../../core/topics/topics.js'
import type { PublishResult } from '../../core/types.js'
import type { WebMQError } from '../../protocol/errors.js'

/** Options of `outbox`. */
export interface OutboxOptions {
  /**
   * Names the outbox within the origin; default `webmq`. Give each user an outbox of their own: otherwise the messages
   * of one user are sent with the next user's token.
   */
  readonly name?: string
  /** Default 1,000; beyond it `E_QUEUE_FULL`. */
  readonly maxMessages?: number
  /** Payload bytes; default 1,048,576; beyond it `E_QUEUE_FULL`. */
  readonly maxBytes?: number
  /** For messages that were never sent; default 86,400,000 (a day). Older ones fail with `E_TIMEOUT`. */
  readonly maxAgeMs?: number
  /**
   * For a message that was sent without an answer, and whose id the server has forgotten meanwhile. `report` (default): it is
   * not sent again, and fails with `E_TIMEOUT`: it may have arrived. `send`: it is sent again, and may arrive twice.
   */
  readonly afterWindow?: 'report' | 'send'
}

/** A message that is on disk. */
export interface Stored {
  readonly id: string
  /**
   * Resolves when the server has accepted the message, sent by this page or by another tab. Rejects if it never will be.
   * Ignoring the rejection does not crash the process.
   */
  readonly confirmed: Promise<PublishResult>
}

/** Events of an outbox. All tabs with the outbox get them. */
export interface OutboxEvents {
  /** The server has accepted a message. */
  readonly sent: { readonly key: string; readonly result: PublishResult }
  /**
   * A message was removed, and is not sent again. `E_TIMEOUT`: it may have arrived, or was too old to be sent.
   * `E_PAYLOAD_INVALID`: the codec of this page does not read it; `payload` is then as it was stored.
   */
  readonly failed: {
    readonly key: string
    readonly id: string
    readonly payload: unknown
    readonly error: WebMQError
  }
  readonly change: { readonly waitingCount: number }
}

/** Publishes that survive a reload. */
export interface Outbox<T = Topics> extends Disposable {
  /** Messages that wait, of all tabs. */
  readonly waitingCount: number
  /**
   * Stores a message, and sends it as soon as there is a connection, after the earlier ones of its key. Resolves when the
   * message is on disk.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_PAYLOAD_INVALID`, `E_QUEUE_FULL`, `E_CLOSED`; `E_UNSUPPORTED`: the browser has no
   * IndexedDB here.
   */
  publish<const K extends string>(
    key: KnownKey<T, K>,
    payload: PayloadInput<T, K>,
    options?: { readonly id?: string },
  ): Promise<Stored>
  on<E extends keyof OutboxEvents>(event: E, handler: (event: OutboxEvents[E]) => unknown): () => void
  /** Ends the sending. Messages stay stored. */
  close(): void
}
