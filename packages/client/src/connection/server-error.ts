import { type ErrorCode, type ServerMessage, WebMQError } from '../protocol/index.js'

type ErrorMessage = Extract<ServerMessage, { verb: 'error' }>

/** The server's `error` as an error to throw. It may have a code of a later version. */
export function errorOfServer({ code, message, retryable }: ErrorMessage): WebMQError {
  return new WebMQError(code as ErrorCode, { message, retryable })
}
