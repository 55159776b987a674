import type { WebMQError } from '../../protocol/errors.js'

/** Why and how an attempt or its connection ended. */
export interface Closure {
  readonly code: number
  readonly error: WebMQError
  /** The server asks the client not to return earlier. */
  readonly retryAfterMs?: number | undefined
}
