import { encodeJson, validateKey, WebMQError } from 'webmq-client/protocol'
import type { OutboundMessage } from '../../../ports/broker.js'
import { andThen } from '../../../ports/maybe-promise.js'
import { assertKeyWords } from '../../../ports/word-limits.js'
import { brokerMessageId, clientOwner, type MessageOwner } from '../../../routing/message-id.js'
import type { Caller } from '../../caller.js'
import type { ValueOf } from '../schema.js'
import type { MESSAGE } from '../shapes.js'
import { assertMayPublish } from './grants.js'
import type { Handler, HandlerContext } from './handler.js'

/** Publishes one message: JSON, or the bytes of the body. */
export const publish: Handler<'publish'> = (context, { caller, query, body, idempotencyKey }) => {
  const message = Buffer.isBuffer(body)
    ? outbound(context, caller, keyOf(query.key), body, true, idempotencyKey)
    : fromJson(context, caller, body, idempotencyKey, query.key)
  return andThen(context.node.publish([message]), ([result]) => {
    if (result === undefined) throw new TypeError('a publish has a result')
    return result
  })
}

/** Publishes messages in order. One refusal is that of all. */
export const publishBatch: Handler<'publishBatch'> = (context, { caller, body }) => {
  if (Buffer.isBuffer(body)) throw new TypeError('a batch is JSON')
  const messages = body.messages.map((message, index) => {
    try {
      return fromJson(context, caller, message, undefined, undefined)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      throw new WebMQError(error.code, { message: `message ${index} of the batch: ${error.message}`, cause: error })
    }
  })
  return andThen(context.node.publish(messages), (results) => ({ results }))
}

function keyOf(key: string | undefined): string {
  if (key === undefined) throw new WebMQError('E_KEY_INVALID', { detail: 'bytes need the key in the query' })
  return key
}

function fromJson(
  context: HandlerContext,
  caller: Caller,
  message: ValueOf<typeof MESSAGE>,
  idempotencyKey: string | undefined,
  queryKey: string | undefined,
): OutboundMessage {
  const { key, id = idempotencyKey } = message
  if (queryKey !== undefined && queryKey !== key) {
    throw new WebMQError('E_KEY_INVALID', { detail: 'the query and the body name different keys' })
  }
  if (idempotencyKey !== undefined && id !== idempotencyKey) {
    throw new WebMQError('E_MESSAGE_INVALID', { detail: 'id and Idempotency-Key differ' })
  }
  if ('base64' in message) return outbound(context, caller, key, Buffer.from(message.base64, 'base64'), true, id)
  return outbound(context, caller, key, Buffer.from(encodeJson(message.payload)), false, id)
}

function outbound(
  { limits }: HandlerContext,
  caller: Caller,
  key: string,
  payload: Buffer,
  isBinary: boolean,
  id: string | undefined,
): OutboundMessage {
  validateKey(key)
  assertKeyWords(key, limits)
  assertMayPublish(caller, key)
  if (payload.length > limits.maxPayloadBytes) {
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', {
      detail: `${payload.length} bytes, at most ${limits.maxPayloadBytes}`,
    })
  }
  if (id === undefined) return { key, payload, isBinary }
  return { key, payload, isBinary, messageId: brokerMessageId(ownerOf(caller), key, id) }
}

/** As over WebSocket, so that a retry over another transport is found to be a duplicate. */
function ownerOf(caller: Caller): MessageOwner {
  return caller.kind === 'operator' ? 'server' : clientOwner(caller.identity.userId)
}
