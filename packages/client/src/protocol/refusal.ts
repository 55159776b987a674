import { type ErrorCode, WebMQError, type WebMQErrorOptions } from './errors.js'

/** Of V8 and JavaScriptCore: the number of frames that a new error records. */
const limits: { stackTraceLimit?: number | undefined } & ErrorConstructor = Error

/**
 * An error without a stack, for the refusal of what a peer sent: the peer is at fault, and the stack tells nothing. A
 * peer can cause thousands of them per second. In Node 20, recording the stack takes 90 % of the
 * time of creating and throwing it.
 */
export function refusalOf(code: ErrorCode, options?: WebMQErrorOptions): WebMQError {
  const { stackTraceLimit } = limits
  if (stackTraceLimit === undefined) return new WebMQError(code, options)
  limits.stackTraceLimit = 0
  const error = new WebMQError(code, options)
  limits.stackTraceLimit = stackTraceLimit
  return error
}
