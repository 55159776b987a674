import { WebMQError } from 'webmq-client/protocol'
import type { Accepted, OutboundMessage } from '../../ports/broker.js'
import { isPromise } from '../../ports/maybe-promise.js'
import { formatPosition } from '../../ports/position.js'
import type { Handler, HandlerContext } from './handler.js'

/** Gives a message to the broker and, if asked to, answers once the broker has it. */
export const publish: Handler<'publish'> = (context, message, isBinary) => {
  const { id, key, messageId, echo, payload } = message
  if (typeof payload === 'string') throw new TypeError('a decoded payload is bytes')
  const { maxPayloadBytes } = context.limits
  if (payload.length > maxPayloadBytes) {
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `${payload.length} bytes, at most ${maxPayloadBytes}` })
  }
  if (!context.mayPublish(key)) throw new WebMQError('E_FORBIDDEN', { detail: `publish ${key}` })
  const byteCount = payload.length + PENDING_OVERHEAD_BYTES
  if (context.pendingBytes + byteCount > context.limits.maxPendingBytes) {
    throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'too many messages of this connection wait for it' })
  }
  const accepted = context.broker.publish(
    outbound(key, payload, isBinary, idOfUser(context.userId, messageId), echo ? undefined : context.connection),
  )
  if (!isPromise(accepted)) return acknowledge(context, id, accepted)
  context.pendingBytes += byteCount
  return accepted.then(
    (accepted) => {
      context.pendingBytes -= byteCount
      acknowledge(context, id, accepted)
    },
    (error: unknown) => {
      context.pendingBytes -= byteCount
      throw error
    },
  )
}

/** What a message that waits for the broker costs beside its payload: key, promises, and a place in several lists. */
const PENDING_OVERHEAD_BYTES = 256

/** Users have message ids of their own [P-7.3]: nobody can suppress another's message by guessing its id. */
function idOfUser(userId: string | undefined, messageId: string | undefined): string | undefined {
  return userId === undefined || messageId === undefined ? messageId : `${userId} ${messageId}`
}

/** Spelled out: spreading optional members costs more than the rest of the handler. */
function outbound(
  key: string,
  payload: Uint8Array,
  isBinary: boolean,
  messageId: string | undefined,
  publisher: number | undefined,
): OutboundMessage {
  if (messageId === undefined)
    return publisher === undefined ? { key, payload, isBinary } : { key, payload, isBinary, publisher }
  if (publisher === undefined) return { key, payload, isBinary, messageId }
  return { key, payload, isBinary, messageId, publisher }
}

function acknowledge(context: HandlerContext, id: string | undefined, { position, isDuplicate }: Accepted): void {
  if (id === undefined) return
  if (position === undefined) context.reply({ verb: 'ok', id, duplicate: isDuplicate })
  else context.reply({ verb: 'ok', id, position: formatPosition(position), duplicate: isDuplicate })
}
