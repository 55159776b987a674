/// <reference lib="esnext.disposable" preserve="true" />
import type { Awaitable } from '../../core/client-options.js'
import type { WebMQError } from '../../protocol/errors.js'

/** A message that this member of a queue group got. */
export interface TaskMessage {
  readonly key: string
}

/** Handles one message. Its errors and rejections go to the `error` event of the client. */
export type TaskHandler<P> = (payload: P, message: TaskMessage) => unknown

/**
 * Answers one request. What it returns, or its promise resolves with, is the reply. A `WebMQError` that it throws reaches
 * the requester. Of any other error the requester sees only `E_RESPONSE`; it goes to the `error` event.
 */
export type Responder<P, R = unknown> = (payload: P, message: TaskMessage) => Awaitable<R>

/** Options of `work`. */
export interface WorkOptions {
  /** Name of the queue group: 1 to 64 characters of `[A-Za-z0-9_-]`. */
  readonly group: string
  /** Ends the membership when aborted. */
  readonly signal?: AbortSignal
}

/** Options of `respond`. */
export interface RespondOptions {
  /** Name of the group of responders, as in {@link WorkOptions}. Default: that of all responders of the pattern. */
  readonly group?: string
  /** Ends it when aborted. */
  readonly signal?: AbortSignal
}

/** Options of `request`. */
export interface RequestOptions {
  /** Time for everything, also for a connection that is not there yet; default 10,000, at most 300,000. */
  readonly timeoutMs?: number
  /** Stops waiting, with `E_ABORTED`; the responder may still handle the request. */
  readonly signal?: AbortSignal
}

/** A membership in a queue group, until it is disposed of. It continues after a reconnect. */
export interface Membership extends Disposable {
  readonly pattern: string
  readonly group: string
  /** `pending` until the server has accepted it, and again while reconnecting. */
  readonly state: 'pending' | 'active' | 'closed'
  /**
   * Resolves when all nodes of the server know this member, on the present or the next connection. Rejects if the server
   * refuses it or it ends first; ignoring the rejection does not crash the process.
   */
  readonly ready: Promise<void>
  /** Why it has ended, other than by `close`. */
  readonly error: WebMQError | undefined
  /** Ends it: no message is handled after the call. Resolves when the server has confirmed it, or the connection is lost. */
  close(): Promise<void>
}
