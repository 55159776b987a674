import { refusalOf, type WriteKind } from 'webmq-client/protocol'
import { assertShallow } from '../../kernel/base/json-excess.js'
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
