import { WebMQError } from 'webmq-client/protocol'

/**
 * What the payload of a text message says.
 * @throws {WebMQError} `E_PAYLOAD_INVALID`.
 */
export function parseJson(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(payload))
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'a text message is not JSON', cause })
  }
}
