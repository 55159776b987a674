import { WebMQError } from 'webmq-client/protocol'

/** An option, a flag, or a file that one of them names, is not allowed. @param detail Begins with its name. */
export function invalidOption(detail: string, cause?: unknown): WebMQError {
  return new WebMQError('E_OPTION_INVALID', { detail, cause })
}
