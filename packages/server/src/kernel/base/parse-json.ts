import { isUtf8 } from 'node:buffer'
import { WebMQError } from 'webmq-client/protocol'

/** A byte order mark stays: `JSON.parse` refuses it, as it does at clients. */
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true })

export function textOf(payload: Uint8Array): string {
  return UTF8.decode(payload)
}

/** Parses the payload of a text message. @throws {WebMQError} `E_PAYLOAD_INVALID`. */
export function parseJson(payload: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof payload === 'string' ? payload : textOf(payload))
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'a text message is not JSON', cause })
  }
}

/** Whether a text, or the text in these bytes, is JSON. */
export function isJson(content: string | Buffer): boolean {
  if (typeof content !== 'string' && !isUtf8(content)) return false
  try {
    JSON.parse(content.toString())
    return true
  } catch {
    // The parser throws for everything that is not JSON.
    return false
  }
}
