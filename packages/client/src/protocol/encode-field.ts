import { WebMQError } from './errors.js'
import type { WirePayload } from './messages.js'

/** A header line with its newline, and a payload: text or bytes, as the payload. */
export function withPayload(header: string, payload: WirePayload): string | Uint8Array<ArrayBuffer> {
  if (typeof payload === 'string') return header + payload
  const start = new TextEncoder().encode(header)
  const bytes = new Uint8Array(start.length + payload.length)
  bytes.set(start)
  bytes.set(payload, start.length)
  return bytes
}

/**
 * An option of a header; nothing if it is `undefined`.
 *
 * Without its check, a space or newline in a value could forge the rest of the message.
 * @throws {WebMQError} `E_MESSAGE_INVALID`.
 */
export function option(name: string, value: string | number | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'number' ? !(Number.isSafeInteger(value) && value >= 0) : !/^[\w:.,-]+$/.test(value))
    throw invalidField(value)
  return ` ${name}=${value}`
}

/** A field that would break the header. */
export function invalidField(value: string | number): WebMQError {
  return new WebMQError('E_MESSAGE_INVALID', { detail: JSON.stringify(value) })
}
