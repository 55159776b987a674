import { refusalOf } from 'webmq-client/protocol'
import type { PublishTiming, PublishTimings } from '../../measuring/publish-timings.js'
import type { Accepted, Broker, OutboundMessage } from '../../ports/broker.js'
import { isPromise, type MaybePromise } from '../../ports/maybe-promise.js'
import { formatPosition } from '../../ports/position.js'
import type { ConnectionId } from '../../ports/transport.js'
import { assertKeyWords, type WordLimits } from '../../ports/word-limits.js'
import { brokerMessageId, clientOwner } from '../../routing/message-id.js'
import type { Stamps } from '../../routing/stamps.js'
import { tracedPublish } from '../../tracing/traced-publish.js'
import type { Tracer } from '../../tracing/tracer.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/** What `publish` may use. */
export interface PublishContext extends HandlerContext {
  readonly connection: ConnectionId
  readonly broker: Pick<Broker, 'publish'>
  readonly limits: Pick<WordLimits, 'maxWords'> & {
    readonly maxPayloadBytes: number
    /** Bytes of one connection that may wait for the broker [P-7.8], so that none can use up the whole budget. */
    readonly maxPendingPublishBytes: number
  }
  /** Bytes of this connection that wait for the broker. */
  pendingBytes: number
  /** `undefined` for anonymous clients. */
  readonly userId: string | undefined
  readonly stamps: Pick<Stamps, 'of'>
  mayPublish(key: string): boolean
  /** Measures some of the publishes. */
  readonly publishes: Pick<PublishTimings, 'begin'>
  /** Absent when nobody traces. */
  readonly tracer: Pick<Tracer, 'publish'> | undefined
  /** The broker has got the message. */
  published(message: OutboundMessage, accepted: MaybePromise<Accepted>): void
}

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_PAYLOAD_TOO_LARGE`, `E_KEY_INVALID`, `E_FORBIDDEN`, `E_BROKER_UNAVAILABLE`.
 */
export function assertMayPublish(context: PublishContext, { key, payload }: MessageOf<'publish'>): void {
  const { maxPayloadBytes, maxPendingPublishBytes } = context.limits
  if (payload.length > maxPayloadBytes) {
    throw refusalOf('E_PAYLOAD_TOO_LARGE', { detail: `${payload.length} bytes, at most ${maxPayloadBytes}` })
  }
  assertKeyWords(key, context.limits, refusalOf)
  if (!context.mayPublish(key)) throw refusalOf('E_FORBIDDEN', { detail: `publish ${key}` })
  if (context.pendingBytes + payload.length + PENDING_OVERHEAD_BYTES > maxPendingPublishBytes) {
    throw refusalOf('E_BROKER_UNAVAILABLE', { detail: 'too many messages of this connection wait for the broker' })
  }
}

/** Gives a message to the broker. A request with an id is answered once the broker has accepted the message. */
export const publish: Handler<'publish', PublishContext> = (context, message, isBinary) => {
  const { id, key, messageId, echo, payload, trace, ephemeral: isEphemeral = false } = message
  const { userId } = context
  if (typeof payload === 'string') throw new TypeError('a decoded payload is bytes')
  assertMayPublish(context, message)
  const byteCount = payload.length + PENDING_OVERHEAD_BYTES
  const brokerId = messageId === undefined ? undefined : brokerMessageId(clientOwner(userId), key, messageId)
  const plain = outbound(key, payload, isBinary, brokerId, echo ? undefined : context.connection)
  const attributes = context.stamps.of({ key, userId, messageId: brokerId, isEphemeral })
  const outgoing = attributes === undefined ? plain : { ...plain, attributes }
  const timing = context.publishes.begin(outgoing)
  const accepted = trace === undefined ? context.broker.publish(outgoing) : tracedPublish(context, outgoing, trace)
  context.published(outgoing, accepted)
  if (!isPromise(accepted)) return acknowledge(context, id, accepted, timing)
  context.pendingBytes += byteCount
  return accepted.then(
    (accepted) => {
      context.pendingBytes -= byteCount
      acknowledge(context, id, accepted, timing)
    },
    (error: unknown) => {
      context.pendingBytes -= byteCount
      throw error
    },
  )
}

/** Memory of a waiting message beside its payload [P-7.8]: key, promises, and entries in several lists. */
const PENDING_OVERHEAD_BYTES = 256

/** Written out: spreading optional members costs more than the rest of the handler. */
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

function acknowledge(
  context: PublishContext,
  id: string | undefined,
  { position, isDuplicate }: Accepted,
  timing: PublishTiming | undefined,
): void {
  timing?.accepted()
  if (id === undefined) return
  if (position === undefined) context.reply({ verb: 'ok', id, duplicate: isDuplicate })
  else context.reply({ verb: 'ok', id, position: formatPosition(position), duplicate: isDuplicate })
}
