import type { Frame } from './watched-socket.js'

/** Longer than any first line [P-2]. */
const MAX_HEAD_BYTES = 1_024

/** Of a payload. */
const SHOWN_CHARS = 200
/** The payload is a token. */
const AUTH = 'auth '

/** What is shown of a frame: its first line, and the beginning of its payload. */
export interface Shown {
  /** Verb, arguments and options. */
  readonly head: string
  /** Text, at most 200 characters; none of what is not UTF-8, and no token. */
  readonly payload: string
}

export function shownOf(frame: Frame): Shown {
  const text =
    typeof frame === 'string'
      ? frame.slice(0, MAX_HEAD_BYTES + SHOWN_CHARS)
      : new TextDecoder().decode(new Uint8Array(frame as ArrayBuffer).subarray(0, MAX_HEAD_BYTES + SHOWN_CHARS))
  const end = text.indexOf('\n')
  const head = end < 0 ? text : text.slice(0, end)
  const payload = end < 0 ? '' : text.slice(end + 1, end + 1 + SHOWN_CHARS)
  const isHidden = payload.includes('\ufffd') || head.startsWith(AUTH)
  return { head, payload: isHidden ? '' : payload }
}

/** Bytes of a frame on the wire, without WebSocket's own. */
export function sizeOf(frame: Frame): number {
  return typeof frame === 'string' ? new TextEncoder().encode(frame).length : frame.byteLength
}
