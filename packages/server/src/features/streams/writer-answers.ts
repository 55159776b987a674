import { encodeJson, WebMQError, type WriteKind } from 'webmq-client/protocol'
import { assertShallow } from '../../kernel/base/json-excess.js'
import { JsonText } from '../../kernel/base/json-text.js'

const PASSING = new Set(['E_NODE_BEHIND', 'E_BROKER_UNAVAILABLE', 'E_TIMEOUT'])

/** Whether the same message may be accepted later. A start that comes too fast is refused at once. */
export function isPassing(error: unknown, kind: WriteKind): error is WebMQError {
  if (!(error instanceof WebMQError)) return false
  return PASSING.has(error.code) || (error.code === 'E_RATE_LIMIT' && kind !== 'start')
}

export function isEnded(error: unknown): boolean {
  return error instanceof WebMQError && error.code === 'E_STREAM_ENDED'
}

/** What readers get: nothing of an error that is none of the table. */
export function failureOf(error: unknown): string {
  const isTold = error instanceof WebMQError
  return jsonOf(isTold ? { message: error.message, code: error.code } : { message: 'the writer has failed' })
}

/** @throws {WebMQError} `E_PAYLOAD_INVALID`. */
export function jsonOf(value: unknown): string {
  if (value === undefined) return ''
  const json = value instanceof JsonText ? value.text : encodeJson(value)
  assertShallow(Buffer.from(json))
  return json
}
