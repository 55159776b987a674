import { WebMQError } from 'webmq-client/protocol'
import type { Handler } from './handler.js'

/** Clients that are sent on come back within this time, and not all at once. */
const MAX_RETRY_AFTER_MS = 500

/**
 * A `listen` that sends its connection to another node when this one is behind: the client keeps its position, and the
 * other node can serve it [P-8.3].
 */
export function sendingOn(listen: Handler<'listen'>): Handler<'listen'> {
  return (session, services, message, isBinary) => {
    const sendOn = (error: unknown) => {
      if (!(error instanceof WebMQError) || error.code !== 'E_NODE_BEHIND') throw error
      services.measurements.resumes.add('sent-on')
      session.end(error.code, Math.ceil(Math.random() * MAX_RETRY_AFTER_MS))
    }
    try {
      return listen(session, services, message, isBinary)?.catch(sendOn)
    } catch (error) {
      sendOn(error)
    }
  }
}
