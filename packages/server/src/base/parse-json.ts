import { WebMQError } from 'webmq-client/protocol'

const UTF8 = new TextDecoder()

/** Decodes the payload of a text message. */
export function textOf(payload: Uint8Array): string {
  return UTF8.decode(payload)
}

/**
 * Parses the payload of a text message.
 * @throws {WebMQError} `E_PAYLOAD_INVALID`.
 */
export function parseJson(payload: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof payload === 'string' ? payload : textOf(payload))
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'a text message is not JSON', cause })
  }
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
