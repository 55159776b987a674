/// <reference lib="esnext.disposable" preserve="true" />

import type { WebMQError } from '../protocol/errors.js'
import type { GapReason, ListenOverflow } from '../protocol/messages.js'
import type { MessageMeta } from '../protocol/meta.js'
import type { WhenOffline } from './client-options.js'
import type { Gap } from './events/events.js'

/**
 * A message as a handler gets it. All handlers of the client share one object: treat it as read-only.
 *
 * `userId`, `timeMs` and `id` are those of {@link ListenOptions.meta}.
 */
export interface Message<P, K extends string = string> extends MessageMeta {
  readonly key: K
  readonly payload: P
  /** Place in the broker's log, opaque; absent if the broker keeps none. */
  readonly position?: string | undefined
  /** Whether the message comes from the log rather than live. */
  readonly replayed: boolean
}

/** The server's answer to a listen. */
export interface ListenResult {
  /** Whether everything after the last known position is being replayed. */
  readonly recovered: boolean
  /** Number of replayed messages, including those still on their way. */
  readonly replayed: number
  /** Where live messages begin; absent if the broker keeps no log. */
  readonly position?: string | undefined
  /** Why messages may be missing. Never set together with `recovered`. */
  readonly gap?: GapReason | undefined
}

/** Options of `listen`. */
export interface ListenOptions {
  /** Ends the listen when aborted. */
  readonly signal?: AbortSignal
  /**
   * Starts after this position, taken from `message.position` or `ready`. At most one of `since`, `last` and `rewind`.
   */
  readonly since?: string | undefined
  /** Starts with this many of the last matching messages in the broker's log. */
  readonly last?: number
  /** Starts with the messages of this time span: milliseconds, or `'250ms'`, `'10s'`, `'2m'`, `'1h'`, `'1d'`. */
  readonly rewind?: number | string
  /**
   * What the server sends when this client reads too slowly; absent: the server decides, by default with `disconnect`.
   *
   * - `disconnect`: every message, or the connection is closed, and the client resumes from its position.
   * - `drop-oldest`: the newest messages, after a gap (`slow-consumer`).
   * - `latest`: the newest message of each key. `latest-told`: the same, with a gap (`conflated`) each time.
   *
   * Subscriptions of a pattern that differ get every message, as with `disconnect`.
   */
  readonly overflow?: ListenOverflow
  /**
   * Messages come with `userId`, `timeMs` and `id`, which the server has stamped: nobody can forge them. They are absent for
   * keys that the server's option `meta` does not name; if it names none of the pattern, the listen is refused with
   * `E_UNSUPPORTED`.
   */
  readonly meta?: boolean
  /**
   * `false`: after a reconnect it goes on live. It asks for nothing that was missed, and tells no gap. For what is soon out of
   * date, such as cursors. Default `true`.
   */
  readonly recover?: boolean
}

/** Handles one message. Its errors and rejections go to the `error` event. */
export type MessageHandler<P> = (payload: P, message: Message<P>) => unknown

/** Events of a subscription and the arguments of their handlers. */
export interface SubscriptionEvents {
  /** The server has accepted the listen: once per connection. */
  ready: ListenResult
  gap: Gap
  /** The listen was refused, or its receiver has failed. */
  error: WebMQError
  closed: undefined
}

/** Passes the messages of a pattern to a handler or receiver, until it is closed. */
export interface Subscription extends Disposable {
  readonly pattern: string
  /** `pending` until the server has accepted the listen, and again while reconnecting. */
  readonly state: 'pending' | 'active' | 'closed'
  /**
   * Resolves when the server has accepted the listen, on the present or the next connection. After a reconnect it is
   * another promise. Rejects if the listen is refused or ends first; ignoring the rejection does not crash the process.
   */
  readonly ready: Promise<ListenResult>
  on<E extends keyof SubscriptionEvents>(event: E, handler: (event: SubscriptionEvents[E]) => unknown): () => void
  /**
   * Ends the subscription: no message is handled after the call. Resolves when the server has confirmed it, or the
   * connection is lost.
   */
  close(): Promise<void>
}

/** Options of `publish`. */
export interface PublishOptions {
  /** 1-64 characters of `[A-Za-z0-9_-]`; default: generated. The server ignores a second message with the same id. */
  readonly id?: string
  /** `broker` (default): resolves when the broker has the message. `none`: resolves when the socket has it. */
  readonly ack?: 'broker' | 'none'
  /** `false`: the listeners of this client do not get the message. Default `true`. */
  readonly echo?: boolean
  /**
   * The message reaches live listeners only: the server does not log it, although a rule covers its key. It has no position.
   * For what is soon out of date, such as typing and cursors. Default `false`.
   */
  readonly ephemeral?: boolean
  /** Time to wait for the acknowledgement once sent; default `ackTimeoutMs` of the client. */
  readonly timeoutMs?: number
  /** Default: `whenOffline` of the client. */
  readonly whenOffline?: WhenOffline
  /** Stops waiting, with `E_ABORTED`; a message that was sent may still be delivered. */
  readonly signal?: AbortSignal
}

/** The outcome of a publish. */
export interface PublishResult {
  /** The message's id: publish again with it, and the server drops the duplicate. */
  readonly id: string
  /** Whether the server had the message already, from an attempt without an answer. */
  readonly duplicate: boolean
  readonly position?: string | undefined
  /** Whether it was dropped because there was no connection (`whenOffline: 'drop'`). */
  readonly dropped?: boolean | undefined
}
