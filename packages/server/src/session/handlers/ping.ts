import type { TextServerMessage } from 'webmq-client/protocol'
import type { Handler, HandlerContext } from './handler.js'

/** What `ping` may use. */
export interface PingContext extends HandlerContext {
  /** All live messages up to here have been sent to this connection; `undefined` when that is not known. */
  readonly livePosition: string | undefined
  /** Replies, and lets the transport give the same answer to the same text from any connection for this time, if it can. */
  replyToAll(request: string, answer: TextServerMessage, validMs: number): void
}

/**
 * A server whose event loop hangs stops to answer after this time. The position in an answer is at most so old; no live
 * message was sent since, for that ends the answer [P-9.7].
 */
const PONG_VALID_MS = 1_000

/** Shows that the server is alive [P-9.1], and up to which position live messages have been sent [P-9.7]. */
export const ping: Handler<'ping', PingContext> = (context) => {
  const { livePosition: position } = context
  context.replyToAll('ping', position === undefined ? { verb: 'pong' } : { verb: 'pong', position }, PONG_VALID_MS)
}
