import { WebMQError } from 'webmq-client/protocol'

/** `E_TOKEN_INVALID`, with the reason. */
export function invalidToken(detail: string, cause?: unknown): WebMQError {
  return new WebMQError('E_TOKEN_INVALID', { detail, cause })
}
