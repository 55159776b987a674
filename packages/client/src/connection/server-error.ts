import { isErrorCode, type ServerMessage, WebMQError } from '../protocol/index.js'

type ErrorMessage = Extract<ServerMessage, { verb: 'error' }>

/** The server's `error` as an error to throw. A code of a later version keeps whether it is retryable. */
export function errorOfServer({ code, message, retryable }: ErrorMessage): WebMQError {
  if (isErrorCode(code)) return new WebMQError(code, { message })
  return new WebMQError(retryable ? 'E_INTERNAL' : 'E_UNSUPPORTED', { detail: `${code} ${message}` })
}
