const SLAB_BYTES = 65_536
/** A frame above this gets memory of its own, so that a slab is never left half unused. */
const MAX_POOLED_BYTES = 8_192
const SPACE = 0x20
const DASH = 0x2d
const NEWLINE = 0x0a
const VERB = Uint8Array.from('message ', (char) => char.charCodeAt(0))
const REPLAY = Uint8Array.from(' replay', (char) => char.charCodeAt(0))

const encoder = new TextEncoder()
let slab = new ArrayBuffer(0)
let slabUsedBytes = 0

/**
 * One `message` with its payload, as bytes for a frame of either kind: the fan-out path. `key` and `position` are taken
 * as valid; the payload is copied and not parsed.
 *
 * The result is the caller's to keep, but it is a part of a larger buffer, so `.buffer` must not be transferred, and a
 * frame that is kept for long keeps up to 64 KiB. Cost: O(bytes); memory of its own per frame would cost four times as
 * much (bench/codec.mjs).
 */
export function encodeMessageFrame(
  key: string,
  position: string | undefined,
  isReplayed: boolean,
  payload: Uint8Array,
): Uint8Array {
  const positionLength = position === undefined ? 1 : position.length
  const headerLength = VERB.length + key.length + 1 + positionLength + (isReplayed ? REPLAY.length : 0) + 1
  const frame = allocate(headerLength + payload.length)
  let at = put(frame, 0, VERB)
  for (let index = 0; index < key.length; index++) {
    const unit = key.charCodeAt(index)
    if (unit > 0x7f) return encodeNonAscii(key, position, isReplayed, payload)
    frame[at++] = unit
  }
  frame[at++] = SPACE
  if (position === undefined) frame[at++] = DASH
  else for (let index = 0; index < position.length; index++) frame[at++] = position.charCodeAt(index)
  if (isReplayed) at = put(frame, at, REPLAY)
  frame[at++] = NEWLINE
  frame.set(payload, at)
  return frame
}

/** The header line of a `message`, its newline included. */
export function messageHeader(key: string, position: string | undefined, isReplayed: boolean): string {
  return `message ${key} ${position ?? '-'}${isReplayed ? ' replay' : ''}\n`
}

function encodeNonAscii(
  key: string,
  position: string | undefined,
  isReplayed: boolean,
  payload: Uint8Array,
): Uint8Array {
  const header = messageHeader(key, position, isReplayed)
  // A UTF-16 unit takes at most three bytes of UTF-8.
  const frame = allocate(3 * header.length + payload.length)
  const { written } = encoder.encodeInto(header, frame)
  frame.set(payload, written)
  return frame.subarray(0, written + payload.length)
}

function put(frame: Uint8Array, start: number, bytes: Uint8Array): number {
  for (let at = 0; at < bytes.length; at++) frame[start + at] = bytes[at] ?? 0
  return start + bytes.length
}

function allocate(length: number): Uint8Array {
  if (length > MAX_POOLED_BYTES) return new Uint8Array(length)
  if (slabUsedBytes + length > slab.byteLength) {
    slab = new ArrayBuffer(SLAB_BYTES)
    slabUsedBytes = 0
  }
  const frame = new Uint8Array(slab, slabUsedBytes, length)
  slabUsedBytes += length
  return frame
}
