import type { Codec } from 'webmq-client'
import { JsonText } from '../../../kernel/base/json-text.js'

/** Payloads of the command line: JSON stays text in both directions, so that numbers keep all their digits. */
export const JSON_TEXTS: Codec = {
  encode: (payload) => (payload instanceof JsonText ? payload.text : (payload as Uint8Array)),
  decode: (bytes) => bytes,
  parse: (text) => {
    // What is no JSON is told as an error.
    JSON.parse(text)
    return JsonText.inLine(text)
  },
}
