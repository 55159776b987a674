import { encodeServerMessage, type TextServerMessage, WebMQError } from 'webmq-client/protocol'
import { logBug } from '../base/log-bug.js'
import type { Logger } from '../base/logger.js'

/**
 * What a client may see of an error. Any error but a WebMQError is a bug: the log gets all of it, the client `E_INTERNAL`.
 * @param session Its id.
 */
export function shownError(error: unknown, session: string, logger: Logger): WebMQError {
  const code = error instanceof WebMQError ? error.code : 'E_INTERNAL'
  if (code === 'E_INTERNAL') {
    logBug(logger, { err: error, session }, 'a message could not be handled')
    return new WebMQError('E_INTERNAL')
  }
  if (code === 'E_BROKER_REFUSED') {
    // This code is for the operator, who has to grant the node more rights. Clients do not know it.
    logBug(logger, { err: error, session }, 'the broker refused a request of a client')
    return new WebMQError('E_UNSUPPORTED', { detail: 'the broker refused it' })
  }
  const known = error as WebMQError
  // Messages of the broker's library may name hosts, so clients do not see them.
  return code === 'E_BROKER_UNAVAILABLE' && known.cause !== undefined ? new WebMQError(code) : known
}

/** What was encoded last, without its id. In a flood, one error refuses many messages. */
let last: { readonly error: WebMQError; readonly body: string } | undefined

/** The answer to a message that was refused. @param encode Absent: as a text frame. */
export function encodeRefusal(
  error: WebMQError,
  id: string | undefined,
  encode: ((message: TextServerMessage) => string) | undefined,
): string {
  if (encode !== undefined) return encode(answerOf(error, id))
  if (last?.error !== error) {
    const text = encodeServerMessage(answerOf(error, undefined))
    last = { error, body: text.slice(HEAD.length) }
  }
  return `error ${id ?? '-'}${last.body}`
}

/** Of an answer without an id. */
const HEAD = 'error -'

function answerOf(error: WebMQError, id: string | undefined): TextServerMessage {
  const { code, message, retryable, docs } = error
  const retryAfterMs = 'retryAfterMs' in error ? Number(error.retryAfterMs) : undefined
  return {
    verb: 'error',
    ...(id === undefined ? undefined : { id }),
    code,
    message,
    retryable,
    docs,
    ...(retryAfterMs === undefined ? undefined : { retryAfterMs }),
  }
}
