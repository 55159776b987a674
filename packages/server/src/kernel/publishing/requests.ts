import type { MaybePromise } from '../base/maybe-promise.js'
import type { OutboundMessage } from '../ports/broker.js'
import type { Author } from './author.js'

/** Time for a reply, unless the request says another. */
export const DEFAULT_WITHIN_MS = 10_000
/** Longest time for a reply: requests that wait take memory on two nodes. */
export const MAX_WITHIN_MS = 300_000

/** The group of responders who write a stream, at its key [P-18.7]. */
export const WRITERS = 'stream'

export interface Reply {
  /** Valid until the receiver has returned. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** The responder refused, or failed: the payload is the JSON of a `code` and a `message`. */
  readonly isError: boolean
}

export interface TakenRequest {
  /** Never rejects: without a reply in time, or when the responder is gone, it is an error. */
  readonly reply: Promise<Reply>
}

/** Who finds a responder for each request. */
export interface Responders {
  /** @throws {WebMQError} `E_UNSUPPORTED`. */
  assertSupported(): void
  /**
   * Hands a request to one responder. The payload is copied before it returns.
   * @param asker Its share of the requests that wait is bounded, and those of a session end with it.
   * @throws {WebMQError} `E_NO_RESPONDERS`; `E_RATE_LIMIT`, when too many requests of the asker, or of this node, wait for their replies;
   *   `E_BROKER_UNAVAILABLE`: a responder's node has not answered within the time; `E_RESPONSE`: it is gone. A responder may
   *   have got it. `E_UNSUPPORTED`.
   */
  ask(
    request: Pick<OutboundMessage, 'key' | 'payload' | 'isBinary'>,
    withinMs: number,
    asker: Author,
  ): MaybePromise<TakenRequest>
}
