import { type ErrorCode, WebMQError } from 'webmq-client/protocol'
import type { Handler, HandlerContext } from './handler.js'

/** What {@link sendingOn} uses. */
export interface SendOnContext extends HandlerContext {
  end(code: ErrorCode, retryAfterMs?: number): void
  resumed(outcome: 'sent-on'): void
}

/** Clients that are sent on come back within this time, and not all at once. */
const MAX_RETRY_AFTER_MS = 500

/**
 * A `listen` that sends its connection to another node when this one is behind: the client keeps its position, and the
 * other node can serve it [P-8.3].
 */
export function sendingOn<Context extends SendOnContext>(
  listen: Handler<'listen', Context>,
): Handler<'listen', Context> {
  return (context, message, isBinary) => {
    const sendOn = (error: unknown) => {
      if (!(error instanceof WebMQError) || error.code !== 'E_NODE_BEHIND') throw error
      context.resumed('sent-on')
      context.end(error.code, Math.ceil(Math.random() * MAX_RETRY_AFTER_MS))
    }
    try {
      return listen(context, message, isBinary)?.catch(sendOn)
    } catch (error) {
      sendOn(error)
    }
  }
}
