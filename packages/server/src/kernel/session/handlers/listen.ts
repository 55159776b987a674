import { type ListenOverflow, WebMQError } from 'webmq-client/protocol'
import { andThen } from '../../base/maybe-promise.js'
import { variantOf } from '../../patterns/variant.js'
import type { Replay } from '../../replay/replay.js'
import { beginListens, type ListenRequest } from '../opening.js'
import type { SessionServices } from '../services.js'
import type { Handler, MessageOf } from './handler.js'

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

/**
 * Begins to listen. The answer comes before the replayed messages. A long replay takes one request per page; the last one
 * makes the listen live.
 */
export const listen: Handler<'listen'> = (session, services, message) => {
  const asked = overflowOf(services, message)
  const overflow = asked === 'disconnect' ? undefined : asked
  let isRecovered = false
  const writer = {
    variant: variantOf('websocket', asked, message.meta === true),
    send(page: Replay) {
      isRecovered = message.since !== undefined && page.gap === undefined
      const isState = message.state === true
      return services.replays.send(session, message, page, { isRecovered, becomesLive: true, overflow, isState })
    },
    isRecovered: () => (message.since === undefined ? undefined : isRecovered),
  }
  return andThen(beginListens(session, requestOf(message), writer), () => undefined)
}

export function requestOf(message: MessageOf<'listen'>): ListenRequest {
  return { patterns: [message.pattern], range: message, hasMeta: message.meta === true }
}

function overflowOf(
  { overflowRules }: Pick<SessionServices, 'overflowRules'>,
  { overflow, pattern }: MessageOf<'listen'>,
): ListenOverflow {
  return overflow ?? overflowRules.of(pattern)
}
