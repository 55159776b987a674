import { DOCS_URL, type ErrorCode, isErrorCode, WebMQError } from 'webmq-client/protocol'

/** Of V8: the number of frames that a new error records. */
const limits: { stackTraceLimit?: number | undefined } & ErrorConstructor = Error

/** The refusal of a hook, as an error for the client. Its code may be one that no table has. */
export class HookRefusal extends WebMQError {
  constructor(code: string, message: string) {
    // A client can cause thousands of them per second, and the stack tells nothing.
    const { stackTraceLimit } = limits
    limits.stackTraceLimit = 0
    super(code as ErrorCode, { message })
    if (stackTraceLimit !== undefined) limits.stackTraceLimit = stackTraceLimit
  }

  override get docs(): string {
    return isErrorCode(this.code) ? super.docs : `${DOCS_URL}hooks.md#refusing`
  }
}
