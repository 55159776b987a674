import type { Codec } from '../client-options.js'
import { WebMQError, type WirePayload } from '../protocol/index.js'

/**
 * Encodes a payload for the wire: with the codec or, without one, bytes unchanged (copied) and everything else as JSON.
 * @throws {WebMQError} `E_PAYLOAD_INVALID` for values without a JSON form, such as `undefined`, functions and cycles.
 */
export function encodePayload(payload: unknown, codec: Codec | undefined): WirePayload {
  let cause: unknown
  try {
    if (codec) return codec.encode(payload)
    if (payload instanceof ArrayBuffer) return new Uint8Array(payload.slice(0))
    if (ArrayBuffer.isView(payload)) {
      return new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength).slice()
    }
    const json: string | undefined = JSON.stringify(payload)
    if (json !== undefined) return json
  } catch (error) {
    cause = error
  }
  throw new WebMQError('E_PAYLOAD_INVALID', { detail: `${typeof payload} has no wire form`, cause })
}

/** Decodes a payload: parses text, and decodes bytes with the codec; without one, returns the bytes. */
export function decodePayload(payload: WirePayload, codec: Codec | undefined): unknown {
  if (typeof payload === 'string') return JSON.parse(payload)
  return codec ? codec.decode(payload) : payload
}

/** Length on the wire in bytes. Cost: O(length) for text. */
export function wireBytes(text: WirePayload): number {
  return typeof text === 'string' ? new TextEncoder().encode(text).length : text.length
}
