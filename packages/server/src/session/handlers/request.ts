import { refusalOf } from 'webmq-client/protocol'
import { isPromise, type MaybePromise } from '../../ports/maybe-promise.js'
import { assertKeyWords, type WordLimits } from '../../ports/word-limits.js'
import type { ConnectionGroups, QueueGroups, Reply, TakenRequest } from '../../queue-groups/index.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/** What `request` may use. */
export interface RequestContext extends HandlerContext {
  readonly groups: Pick<QueueGroups, 'ask' | 'assertSupported'>
  readonly ownGroups: Pick<ConnectionGroups, 'reply'>
  readonly limits: Pick<WordLimits, 'maxWords'> & {
    readonly maxPayloadBytes: number
    /** Requests of one connection that wait for a reply. */
    readonly maxRequestsPerConnection: number
  }
  /** Requests of this connection that wait for a reply. */
  requestCount: number
  mayPublish(key: string): boolean
}

/** Time for a reply, unless the request says another. */
const DEFAULT_WITHIN_MS = 10_000
/** Longest time for a reply: requests that wait take memory on two nodes. */
export const MAX_WITHIN_MS = 300_000

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_PAYLOAD_TOO_LARGE`, `E_KEY_INVALID`, `E_FORBIDDEN`, `E_MESSAGE_INVALID`,
 *   `E_RATE_LIMIT`.
 */
export function assertMayRequest(context: RequestContext, { key, payload, withinMs = 1 }: MessageOf<'request'>): void {
  const { maxPayloadBytes, maxRequestsPerConnection } = context.limits
  context.groups.assertSupported()
  if (payload.length > maxPayloadBytes) {
    throw refusalOf('E_PAYLOAD_TOO_LARGE', { detail: `${payload.length} bytes, at most ${maxPayloadBytes}` })
  }
  assertKeyWords(key, context.limits, refusalOf)
  if (!context.mayPublish(key)) throw refusalOf('E_FORBIDDEN', { detail: `publish ${key}` })
  if (withinMs < 1 || withinMs > MAX_WITHIN_MS) {
    throw refusalOf('E_MESSAGE_INVALID', { detail: `within is 1 to ${MAX_WITHIN_MS}` })
  }
  if (context.requestCount >= maxRequestsPerConnection) {
    throw refusalOf('E_RATE_LIMIT', { detail: `${maxRequestsPerConnection} requests wait (maxRequestsPerConnection)` })
  }
}

/** Hands a request to one responder. The answer says that one has it; the reply, or an error, follows. */
export const request: Handler<'request', RequestContext> = (context, message, isBinary) => {
  const { id, key, payload, withinMs = DEFAULT_WITHIN_MS } = message
  if (typeof payload === 'string') throw new TypeError('a decoded payload is bytes')
  assertMayRequest(context, message)
  const asked: MaybePromise<TakenRequest> = context.groups.ask({ key, payload, isBinary }, withinMs)
  context.requestCount++
  const taken = ({ reply }: TakenRequest) => {
    if (!context.isClosed) context.reply({ verb: 'ok', id })
    void reply.then((outcome) => {
      context.requestCount--
      context.ownGroups.reply(id, outcome)
    })
  }
  if (!isPromise(asked)) return taken(asked)
  return asked.then(taken, (error: unknown) => {
    context.requestCount--
    throw error
  })
}

/** What `reply` may use. */
export interface ReplyContext extends HandlerContext {
  readonly limits: { readonly maxPayloadBytes: number }
  /** Replies to a request that this connection was handed; `false`: it was not, or nobody waits any more. */
  replyTo(ticketId: string, reply: Reply): boolean
}

/** Sends a reply to the requester, and to nobody else. */
export const reply: Handler<'reply', ReplyContext> = (context, { id, isError, payload }, isBinary) => {
  if (typeof payload === 'string') throw new TypeError('a decoded payload is bytes')
  const { maxPayloadBytes } = context.limits
  if (payload.length > maxPayloadBytes) {
    throw refusalOf('E_PAYLOAD_TOO_LARGE', { detail: `${payload.length} bytes, at most ${maxPayloadBytes}` })
  }
  if (isError && payload.length > MAX_ERROR_BYTES) {
    throw refusalOf('E_PAYLOAD_TOO_LARGE', {
      detail: `an error of ${payload.length} bytes, at most ${MAX_ERROR_BYTES}`,
    })
  }
  if (!context.replyTo(id, { payload, isBinary, isError })) {
    throw refusalOf('E_TIMEOUT', { detail: 'nobody waits for this reply' })
  }
}

/** An error is a code and a sentence. */
const MAX_ERROR_BYTES = 2_048
