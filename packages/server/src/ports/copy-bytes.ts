import type { FrameData } from './transport.js'

/** A copy, also of a `Buffer`, whose own `slice` is a view: the bytes of transports and callers are borrowed. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

/** The bytes of a frame, the caller's own. */
export function copyFrame(data: FrameData): Uint8Array {
  if (typeof data === 'string' || data instanceof Uint8Array) return Buffer.from(data)
  const bytes = Buffer.allocUnsafe(data.byteLength)
  data.writeTo(bytes, 0)
  return bytes
}
