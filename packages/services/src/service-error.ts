import { WebMQError } from 'webmq-client/protocol'

/** An `E_SERVICE_FAILED` with what exactly went wrong and, where something can be done, what. */
export function serviceError(detail: string, cause?: unknown): WebMQError {
  return new WebMQError('E_SERVICE_FAILED', { detail, cause })
}
