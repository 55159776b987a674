import { encodeJson, validateKey, WebMQError } from 'webmq-client/protocol'
import { HookRefusal } from '../../../hooks/index.js'
import type { OutboundMessage } from '../../../ports/broker.js'
import { andThen, type MaybePromise } from '../../../ports/maybe-promise.js'
import { assertKeyWords } from '../../../ports/word-limits.js'
import { brokerMessageId, clientOwner, type MessageOwner } from '../../../routing/message-id.js'
import { withTraceparent } from '../../../tracing/traced-publish.js'
import { formatTraceparent, parseTraceparent } from '../../../tracing/traceparent.js'
import type { Caller } from '../../caller.js'
import { hookCallerOf } from '../asking.js'
import type { ValueOf } from '../schema.js'
import type { MESSAGE } from '../shapes.js'
import { assertMayPublish } from './grants.js'
import type { Handler, HandlerContext } from './handler.js'

/** A message as its caller means it. */
interface Draft {
  readonly key: string
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly id: string | undefined
  readonly isEphemeral: boolean
}

/** Publishes one message: JSON, or the bytes of the body. */
export const publish: Handler<'publish'> = (context, { caller, query, body, idempotencyKey, traceparent }) => {
  const given = Buffer.isBuffer(body)
    ? { key: keyOf(query.key), payload: body, isBinary: true, id: idempotencyKey, isEphemeral: false }
    : draftOf(body, idempotencyKey, query.key)
  const draft = query.ephemeral === true ? { ...given, isEphemeral: true } : given
  passRate(context, caller, [draft])
  return andThen(approved(context, caller, draft), (message) =>
    andThen(context.node.publish([withTrace(message, traceparent)]), ([result]) => {
      if (result === undefined) throw new TypeError('a publish has a result')
      return result
    }),
  )
}

/** Publishes messages in order. One refusal is that of all. */
export const publishBatch: Handler<'publishBatch'> = (context, { caller, body, traceparent }) => {
  if (Buffer.isBuffer(body)) throw new TypeError('a batch is JSON')
  const drafts = body.messages.map((message, index) => {
    try {
      return draftOf(message, undefined, undefined)
    } catch (error) {
      return refuseItem(index, error)
    }
  })
  passRate(context, caller, drafts)
  // Every answer is awaited: while hooks decide about one message, another may be refused at once.
  const approvals = drafts.map(async (draft, index) => {
    try {
      return await approved(context, caller, draft)
    } catch (error) {
      return refuseItem(index, error)
    }
  })
  return Promise.all(approvals).then((messages) =>
    andThen(context.node.publish(messages.map((message) => withTrace(message, traceparent))), (results) => ({
      results,
    })),
  )
}

/** Names the message, in an error with the same code. */
function refuseItem(index: number, error: unknown): never {
  if (!(error instanceof WebMQError) || error instanceof HookRefusal) throw error
  throw new WebMQError(error.code, { message: `message ${index} of the batch: ${error.message}`, cause: error })
}

/** One that is not valid is ignored, as W3C Trace Context asks. */
function withTrace(message: OutboundMessage, traceparent: string | undefined): OutboundMessage {
  const parts = traceparent === undefined ? undefined : parseTraceparent(traceparent)
  return parts === undefined ? message : withTraceparent(message, formatTraceparent(parts))
}

/** A batch passes as a whole, and is paid off later. */
function passRate({ node }: HandlerContext, caller: Caller, messages: readonly Pick<Draft, 'payload'>[]): void {
  if (caller.kind === 'operator') return
  const byteCount = messages.reduce((sum, { payload }) => sum + payload.length, 0)
  node.passPublish(caller.identity, byteCount, messages.length)
}

function keyOf(key: string | undefined): string {
  if (key === undefined) throw new WebMQError('E_KEY_INVALID', { detail: 'bytes need the key in the query' })
  return key
}

function draftOf(
  message: ValueOf<typeof MESSAGE>,
  idempotencyKey: string | undefined,
  queryKey: string | undefined,
): Draft {
  const { key, id = idempotencyKey, ephemeral: isEphemeral = false } = message
  if (queryKey !== undefined && queryKey !== key) {
    throw new WebMQError('E_KEY_INVALID', { detail: 'the query and the body name different keys' })
  }
  if (idempotencyKey !== undefined && id !== idempotencyKey) {
    throw new WebMQError('E_MESSAGE_INVALID', { detail: 'id and Idempotency-Key differ' })
  }
  if ('base64' in message) {
    return { key, payload: Buffer.from(message.base64, 'base64'), isBinary: true, id, isEphemeral }
  }
  return { key, payload: Buffer.from(encodeJson(message.payload)), isBinary: false, id, isEphemeral }
}

/** Checks a message, and asks the hooks about one of a client. What they change is checked again. */
function approved(context: HandlerContext, caller: Caller, draft: Draft): MaybePromise<OutboundMessage> {
  const message = outbound(context, caller, draft)
  if (caller.kind === 'operator' || context.hooks === undefined) return message
  const { key, payload, isBinary } = draft
  return andThen(context.hooks.publish(hookCallerOf(caller), key, payload, isBinary, draft.isEphemeral), (change) =>
    change === undefined ? message : outbound(context, caller, { ...draft, key: change.key, ...change.content }),
  )
}

function outbound({ limits, node }: HandlerContext, caller: Caller, draft: Draft): OutboundMessage {
  const { key, payload, isBinary, id, isEphemeral } = draft
  validateKey(key)
  assertKeyWords(key, limits)
  assertMayPublish(caller, key)
  if (payload.length > limits.maxPayloadBytes) {
    const detail = `${payload.length} bytes, at most ${limits.maxPayloadBytes}`
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail })
  }
  const messageId = id === undefined ? undefined : brokerMessageId(ownerOf(caller), key, id)
  // The user of a token is that of the token, whatever the request says. An operator has none.
  const userId = caller.kind === 'operator' ? undefined : caller.identity.userId
  const attributes = node.stamps.of({ key, userId, messageId, isEphemeral })
  return {
    key,
    payload,
    isBinary,
    ...(messageId === undefined ? undefined : { messageId }),
    ...(attributes === undefined ? undefined : { attributes }),
  }
}

/** As over WebSocket, so that a retry over another transport is found to be a duplicate. */
function ownerOf(caller: Caller): MessageOwner {
  return caller.kind === 'operator' ? 'server' : clientOwner(caller.identity.userId)
}
