import type { WebMQError } from '../../protocol/errors.js'
import type { GapReason } from '../../protocol/messages.js'
import { checks } from '../checks.js'
import type { BackoffOptions } from '../connection/backoff.js'
import type { Gap } from '../events/events.js'
import type { ListenOptions, Message, MessageHandler, Subscription } from '../types.js'

/**
 * What `listen` accepts instead of a plain handler: an object that a part makes from one, such as
 * `latest(handler, { every: 'frame' })`. A part that is not imported costs an app nothing.
 *
 * Every member but `deliver` is optional. A receiver belongs to one subscription. The client calls it synchronously, and
 * catches what it throws, like the errors of a handler. To wrap another receiver, extend `Wrapper`.
 */
export interface Receiver<P = unknown> {
  /** The app's handler: `unlisten(pattern, handler)` ends the subscription by it, or by the receiver itself. */
  readonly handler?: unknown
  /** Options of `listen` that the receiver needs, such as `{ overflow: 'latest' }`. Those that the app gives count more. */
  readonly options?: ListenOptions | undefined
  /** Whether the client ends the subscription when it closes. Otherwise `open` continues it. Default `false`. */
  readonly isSingleUse?: boolean
  /** Whether the replay has the last message of each key, instead of all messages: see `state` of `webmq-client/parts`. */
  readonly wantsState?: true | undefined
  /** Called once, before everything else. */
  attach?(context: ReceiverContext): void
  /**
   * Handles a message. Each one arrives once and in order, whatever the connections. A promise is not awaited; its
   * rejection is reported.
   * @param size Length of the payload on the wire, in characters of text or in bytes.
   */
  deliver(message: Message<P>, size?: number): unknown
  /**
   * The server has accepted the listen, or a page of its replay, without a gap; the messages follow. Called at least
   * once for each connection, except when `gap` is called instead.
   */
  accepted?(): void
  /** The messages of the replay were delivered; live ones follow. Called once for each connection. */
  caughtUp?(): void
  /** Messages may be missing. Called after the events `gap` of the subscription, before the next message. */
  gap?(gap: Gap): void
  /** The connection is lost, and the client will continue from the last delivered message. */
  down?(): void
  /**
   * No message follows, for now or for good. After the closing of the client, `accepted` or `gap` may be called again.
   * @param error Why; `undefined` if the app itself has ended the subscription or has closed the client.
   */
  close?(error: WebMQError | undefined): void
  /** What the receiver was given but has not handled, such as buffered messages; `undefined` if there is none. */
  backlog?(): Backlog | undefined
}

/** Messages that a {@link Receiver} was given and has not handled. */
export interface Backlog {
  /** Everything up to this position was handled; `undefined` if unknown. A reload of the page continues there. */
  readonly position: string | undefined
  /**
   * Resolves when there is no backlog, or the subscription has ended. The client asks for the next page of a replay
   * only then, so that a slow receiver is not flooded.
   */
  whenHandled(): Promise<void>
}

/** A receiver's access to its subscription. */
export interface ReceiverContext extends BackoffOptions {
  readonly subscription: Subscription
  /** Emits the event `error` of the client. @param message The message that could not be handled. */
  report(error: unknown, message?: Message<unknown>): void
  /** Emits the events `gap`, because the receiver itself has lost messages. Does not call the receiver's `gap`. */
  gap(reason: GapReason): Gap
  /** Messages up to this position are not needed, even if they arrive later. */
  skip(position: string | undefined): void
  /**
   * Asks for everything after this position again, because the receiver could not keep it: at once, or with the next
   * connection. Until the answer, no message is delivered.
   */
  again(position: string): void
  /** Ends the subscription with an error, which is also reported. */
  fail(error: WebMQError, message?: Message<unknown>): void
}

/** A handler, or a receiver that a part has made of one. */
export type Receiving<P> = MessageHandler<P> | Receiver<P>

/** Makes a receiver of a plain handler. */
export function receiverOf<P>(receiving: Receiving<P>): Receiver<P> {
  checks.receiver?.(receiving)
  if (typeof receiving !== 'function') return receiving
  return { handler: receiving, deliver: (message) => receiving(message.payload, message) }
}
