import { WebMQError } from '../../protocol/errors.js'
import type { WirePayload } from '../../protocol/messages.js'
import { encodeJson } from '../checks.js'
import type { Codec } from '../client-options.js'

/** Published in place of a payload: the message has none. In a state topic it removes the key. */
export const REMOVAL = Symbol('removal')

/**
 * Encodes a payload for the wire: with the codec or, without one, bytes unchanged (copied) and everything else as JSON.
 * @throws {WebMQError} `E_PAYLOAD_INVALID`.
 */
export function encodePayload(payload: unknown, codec: Codec | undefined): WirePayload {
  if (payload === REMOVAL) return ''
  if (codec) {
    try {
      return codec.encode(payload)
    } catch (cause) {
      throw new WebMQError('E_PAYLOAD_INVALID', { cause })
    }
  }
  return bytesOf(payload)?.slice() ?? encodeJson(payload)
}

/** A view of bytes; `undefined` for anything else. */
export function bytesOf(value: unknown): Uint8Array | undefined {
  // By its tag: a buffer of another frame, or of a test environment, is an instance of another class.
  if (ArrayBuffer.isView(value) || (value as ArrayBuffer)?.[Symbol.toStringTag] === 'ArrayBuffer') {
    const { buffer = value as ArrayBuffer, byteOffset, byteLength } = value as Partial<ArrayBufferView>
    return new Uint8Array(buffer, byteOffset, byteLength)
  }
  return undefined
}

/**
 * Decodes a payload: parses text, with the codec if it can, and decodes bytes with the codec; without one, returns the bytes. An empty one is
 * `undefined`, except for bytes without a codec.
 */
export function decodePayload(payload: WirePayload, codec: Codec | undefined): unknown {
  if (payload === '' || (codec && payload.length === 0)) return undefined
  if (typeof payload === 'string') return codec?.parse ? codec.parse(payload) : JSON.parse(payload)
  return codec ? codec.decode(payload) : payload
}

/** Length on the wire in bytes. Cost: O(length) for text. */
export function wireBytes(text: WirePayload): number {
  return typeof text === 'string' ? new TextEncoder().encode(text).length : text.length
}
