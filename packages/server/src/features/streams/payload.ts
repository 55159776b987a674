import { encodeJson, refusalOf, WebMQError, type WriteKind } from 'webmq-client/protocol'
import { assertShallow } from '../../kernel/base/json-excess.js'
import { JsonText } from '../../kernel/base/json-text.js'
import { parseJson } from '../../kernel/base/parse-json.js'

/** What every reader can read. @throws {WebMQError} `E_PAYLOAD_INVALID`. */
export function assertPayload(kind: WriteKind, payload: Uint8Array, isBinary: boolean): void {
  if (kind === 'append') {
    if (isBinary || typeof parseJson(payload) === 'string') return
  } else if (payload.length === 0) return
  else if (kind !== 'stop' && kind !== 'beat' && !isBinary) {
    // Readers get it in JSON of the server's.
    assertShallow(payload)
    parseJson(payload)
    return
  }
  throw refusalOf('E_PAYLOAD_INVALID', { detail: `no payload of ${kind}` })
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
