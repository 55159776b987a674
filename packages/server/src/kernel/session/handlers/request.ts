import { refusalOf } from 'webmq-client/protocol'
import type { TakenRequest } from '../../../features/queue-groups/index.js'
import { isPromise, type MaybePromise } from '../../base/maybe-promise.js'
import type { Handler } from './handler.js'

/** Time for a reply, unless the request says another. */
const DEFAULT_WITHIN_MS = 10_000
/** Longest time for a reply: requests that wait take memory on two nodes. */
export const MAX_WITHIN_MS = 300_000

/** Hands a request to one responder. The answer says that one has it; the reply, or an error, follows. */
export const request: Handler<'request'> = (session, { publisher }, message, isBinary) => {
  const { id, withinMs = DEFAULT_WITHIN_MS } = message
  const { maxRequestsPerConnection } = session.limits
  if (withinMs < 1 || withinMs > MAX_WITHIN_MS) {
    throw refusalOf('E_MESSAGE_INVALID', { detail: `within is 1 to ${MAX_WITHIN_MS}` })
  }
  if (session.requestCount >= maxRequestsPerConnection) {
    throw refusalOf('E_RATE_LIMIT', { detail: `${maxRequestsPerConnection} requests wait (maxRequestsPerConnection)` })
  }
  const asked: MaybePromise<TakenRequest> = publisher.request(session, message, isBinary, withinMs)
  session.requestCount++
  const taken = ({ reply }: TakenRequest) => {
    if (!session.isClosed) session.reply({ verb: 'ok', id })
    void reply.then((outcome) => {
      session.requestCount--
      session.ownGroups.reply(id, outcome)
    })
  }
  if (!isPromise(asked)) return taken(asked)
  return asked.then(taken, (error: unknown) => {
    session.requestCount--
    throw error
  })
}

/** Sends a reply to the requester, and to nobody else. */
export const reply: Handler<'reply'> = (session, { groups }, { id, isError, payload }, isBinary) => {
  if (typeof payload === 'string') throw new TypeError('a decoded payload is bytes')
  const { maxPayloadBytes } = session.limits
  if (payload.length > maxPayloadBytes) {
    throw refusalOf('E_PAYLOAD_TOO_LARGE', { detail: `${payload.length} bytes, at most ${maxPayloadBytes}` })
  }
  if (isError && payload.length > MAX_ERROR_BYTES) {
    throw refusalOf('E_PAYLOAD_TOO_LARGE', {
      detail: `an error of ${payload.length} bytes, at most ${MAX_ERROR_BYTES}`,
    })
  }
  const member = session.held.groups
  if (member === undefined || !groups.requests.reply(member, id, { payload, isBinary, isError })) {
    throw refusalOf('E_TIMEOUT', { detail: 'nobody waits for this reply' })
  }
}

/** An error is a code and a sentence. */
const MAX_ERROR_BYTES = 2_048
