/// <reference lib="esnext.disposable" preserve="true" />
import type { Awaitable, WhenOffline } from './client-options.js'
import type { Gap } from './events/events.js'
import type { GapReason, WebMQError } from './protocol/index.js'

/** A message as a handler gets it. One object is shared by all handlers of the client: treat it as read-only. */
export interface Message<P> {
  readonly key: string
  readonly payload: P
  /** Place in the broker's log, opaque; absent when the broker keeps none. */
  readonly position?: string | undefined
  /** Whether it comes from the log rather than live. */
  readonly replayed: boolean
}

/** What the server said to a listen. */
export interface ListenResult {
  /** Whether everything since the last known position is being replayed. */
  readonly recovered: boolean
  /** Number of messages that are being replayed, or have been. */
  readonly replayed: number
  /** Where live messages begin; absent when the broker keeps no log. */
  readonly position?: string | undefined
  /** Why messages may be missing. Never together with `recovered`. */
  readonly gap?: GapReason | undefined
}

/** What an async iterator does with a message when its buffer is full. */
export type Overflow = 'close' | 'drop-oldest' | 'drop-newest'

/** Options of `listen`. */
export interface ListenOptions {
  /** Ends the listen when aborted; iteration then ends without an error. */
  readonly signal?: AbortSignal
  /** Begin after this position, as given by `message.position` or `ready`. At most one of `since`, `last` and `rewind`. */
  readonly since?: string | undefined
  /** Begin with the last so many matching messages of the broker's log. */
  readonly last?: number
  /** Begin with what was logged within this time: milliseconds, or such as `'250ms'`, `'10s'`, `'2m'`, `'1h'`, `'1d'`. */
  readonly rewind?: number | string
  /**
   * Loads what the app derives from messages: when the server has first accepted the listen, and again on every gap. Messages that
   * come meanwhile are handled afterwards, in order, so that nothing is missed between what is loaded and what is live. A position
   * that it returns says that what is loaded has everything up to there: such messages are not handled. What it throws goes to
   * the `error` event, and it is tried again after a random time of up to 500 ms, 1 s, 2 s, … as for `reconnect`.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: an app that returns nothing returns a promise of void
  readonly load?: (request: LoadRequest) => Awaitable<string | undefined | void>
  /**
   * Messages that wait for `for await`, or for `load`; default 16,384. Bounds memory when either is slower than the messages. When
   * more come during `load`, that is a gap (`limit`), and it is run again.
   */
  readonly bufferMaxMessages?: number
  /** Default `close`: the loop throws `E_BUFFER_OVERFLOW` rather than miss messages silently. */
  readonly overflow?: Overflow
}

/** Why the app is to load. */
export interface LoadRequest {
  /** `gap`: messages may be missing, for the reason in `gap`. */
  readonly cause: 'initial' | 'gap'
  readonly gap?: Gap | undefined
  /** Aborted when the result is no longer wanted: another gap has come, or the subscription has ended. */
  readonly signal: AbortSignal
}

/** Handles one message; what it throws, or rejects with, goes to the `error` event. */
export type MessageHandler<P> = (payload: P, message: Message<P>) => unknown

/** Events of a subscription and what their handlers get. */
export interface SubscriptionEvents {
  /** The server has accepted the listen: once per connection. */
  ready: ListenResult
  gap: Gap
  /** The listen was refused, or the iterator's buffer has overflowed. */
  error: WebMQError
  closed: undefined
}

/** A handler, or an iterator, that gets the messages of a pattern until it is disposed of. */
export interface Subscription<P> extends AsyncIterable<Message<P>>, Disposable {
  readonly pattern: string
  /** `pending` until the server has accepted the listen, and again while reconnecting. */
  readonly state: 'pending' | 'active' | 'closed'
  /**
   * Resolves when the server has accepted the listen, on the present or the coming connection: after a reconnect it is
   * another promise. Rejects when the listen is refused or ends before; a rejection that nobody looks at is no crash.
   */
  readonly ready: Promise<ListenResult>
  /** Whether `load` is running, or about to be tried again: what the app shows may be out of date. */
  readonly isLoading: boolean
  /** Messages that `overflow` has dropped. */
  readonly droppedCount: number
  on<E extends keyof SubscriptionEvents>(event: E, handler: (event: SubscriptionEvents[E]) => unknown): () => void
  /** No message is handled after the call; resolves when the server has confirmed it or the connection is gone. */
  unlisten(): Promise<void>
  /** Messages as they come, each to one reader. Leaving the loop ends the listen. */
  [Symbol.asyncIterator](): AsyncIterator<Message<P>, undefined>
}

/** Options of `publish`. */
export interface PublishOptions {
  /** 1-64 characters of `[A-Za-z0-9_-]`; default: generated. The server ignores a second message of the same id. */
  readonly id?: string
  /** `broker` (default): resolve when the broker has the message. `none`: resolve when it is handed to the socket. */
  readonly ack?: 'broker' | 'none'
  /** `false`: this client's own listeners do not get the message. Default `true`. */
  readonly echo?: boolean
  /** Time to wait for the acknowledgement once sent; default `ackTimeoutMs` of the client. */
  readonly timeoutMs?: number
  /** Default: `whenOffline` of the client. */
  readonly whenOffline?: WhenOffline
  /** Stops waiting, with `E_ABORTED`; what was already sent may still be delivered. */
  readonly signal?: AbortSignal
}

/** What became of a message. */
export interface PublishResult {
  /** The message's id: publish again with it, and the server de-duplicates. */
  readonly id: string
  /** Whether the server had the message already, from an attempt whose answer was lost. */
  readonly duplicate: boolean
  readonly position?: string | undefined
  /** Whether it was given up because there was no connection (`whenOffline: 'drop'`). */
  readonly dropped?: boolean | undefined
}

/** Options of `history`. */
export interface HistoryOptions {
  /** Messages at most; default 100. The server may give fewer at once, and then says `more`. */
  readonly limit?: number
  /** What came after this position, the oldest first. Not together with `rewind`. */
  readonly since?: string | undefined
  /** What was logged within this time, the oldest first: milliseconds, or such as `'2m'`. */
  readonly rewind?: number | string
  /** The newest first; with `since` or `rewind`, the newest of what they ask for. */
  readonly reverse?: boolean
}

/** What the broker's log holds of a key. */
export interface HistoryResult<P> {
  readonly messages: readonly Message<P>[]
  /** Up to here the messages are complete: go on with it as `since`, of `history` or of `listen`. */
  readonly position?: string | undefined
  /** Whether there is more after `position`; with `reverse`, before what was given. */
  readonly more: boolean
  /** Why messages may be missing among them. */
  readonly gap?: GapReason | undefined
}
