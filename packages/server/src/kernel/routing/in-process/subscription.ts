import type { LocalGap } from './listeners.js'

/** Options of {@link WebMQServer.listen}. */
export interface LocalListenOptions {
  /** Called, in order with the messages, when messages may be missing before the next one. Errors are logged. */
  readonly onGap?: (gap: LocalGap) => unknown
  /**
   * Name of a queue group, 1 to 64 characters of `[A-Za-z0-9_-]`: of each message, one member of the group with this
   * pattern gets it, over all connections and nodes. There are no gaps: without a member, the group misses the message.
   */
  readonly group?: string | undefined
}

/** A subscription in the server's process. */
export interface LocalSubscription extends Disposable {
  readonly pattern: string
  /** Resolves once the handler gets messages. Rejects with `E_BROKER_UNAVAILABLE`, or `E_NOT_RUNNING` when the server stops first. */
  readonly ready: Promise<void>
  /** Ends the subscription; the handler gets no message after the call. */
  close(): void
}
