import type { FrameData } from './transport.js'

/** The bytes of a frame, the caller's own. */
export function copyFrame(data: FrameData): Uint8Array {
  if (typeof data === 'string' || data instanceof Uint8Array) return Buffer.from(data)
  const bytes = Buffer.allocUnsafe(data.byteLength)
  data.writeTo(bytes, 0)
  return bytes
}
