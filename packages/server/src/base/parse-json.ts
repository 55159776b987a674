import { WebMQError } from 'webmq-client/protocol'

/**
 * Parses the payload of a text message.
 * @throws {WebMQError} `E_PAYLOAD_INVALID`.
 */
export function parseJson(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(payload))
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'a text message is not JSON', cause })
  }
}
