import type { Frame } from './watched-socket.js'

/** Longer than any first line [P-2]. */
const MAX_HEAD_BYTES = 1_024
const NEWLINE = 10

/** The first line of a frame: its verb, arguments and options. */
export function headOf(frame: Frame): string {
  if (typeof frame === 'string') return frame.split('\n', 1)[0] ?? ''
  const bytes = new Uint8Array(frame as ArrayBuffer).subarray(0, MAX_HEAD_BYTES)
  const end = bytes.indexOf(NEWLINE)
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end))
}

/** Bytes of a frame on the wire, without WebSocket's own. */
export function sizeOf(frame: Frame): number {
  return typeof frame === 'string' ? new TextEncoder().encode(frame).length : frame.byteLength
}
