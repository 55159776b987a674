import { type ErrorCode, WebMQError } from '../../protocol/errors.js'
import type { ServerMessage } from '../../protocol/messages.js'

type ErrorMessage = Extract<ServerMessage, { verb: 'error' }>

/** The server's `error` as an error to throw. It may have a code of a later version. */
export function errorOfServer(answer: ErrorMessage): WebMQError {
  return new WebMQError(answer.code as ErrorCode, answer)
}
