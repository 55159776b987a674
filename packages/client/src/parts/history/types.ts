import type { Message } from '../../core/types.js'
import type { GapReason } from '../../protocol/messages.js'

/** Options of `history`. */
export interface HistoryOptions {
  /** Maximum number of messages; default 100. The server may return fewer, with `more`. */
  readonly limit?: number
  /** Messages after this position, oldest first. Not together with `rewind`. */
  readonly since?: string | undefined
  /**
   * The newest `limit` messages before this position, oldest first: page back with the position of the oldest message. Not
   * together with `since` and `rewind`.
   */
  readonly before?: string | undefined
  /** Messages of this time span, oldest first: milliseconds, or a string such as `'2m'`. */
  readonly rewind?: number | string
  /** Newest first; with `since` or `rewind`, the newest of these messages. */
  readonly reverse?: boolean
  /** Messages come with `userId`, `timeMs` and `id`, see `listen`. */
  readonly meta?: boolean
}

/** The messages of a key in the broker's log. */
export interface HistoryResult<P> {
  readonly messages: readonly Message<P>[]
  /** The messages are complete up to here: continue with it as `since`, of `history` or of `listen`. */
  readonly position?: string | undefined
  /** Whether there are more messages after `position`; with `reverse` or `before`, before the returned ones. */
  readonly more: boolean
  /**
   * Why some of these messages may be missing. Without `since` and `rewind`, `history-expired`: fewer than `limit` came,
   * because the log no longer has the older ones. Without a gap and `more`, fewer are all that there are.
   */
  readonly gap?: GapReason | undefined
}
