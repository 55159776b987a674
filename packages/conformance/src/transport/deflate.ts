import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'

/** RFC 7692 §7.2.1: the end of every compressed message, which stays off the wire. */
const TAIL = Buffer.from([0, 0, 0xff, 0xff])

/** The payload of a compressed message. */
export function deflated(message: Uint8Array | string): Buffer {
  const bytes = deflateRawSync(message, { finishFlush: constants.Z_SYNC_FLUSH })
  return bytes.subarray(0, -TAIL.length)
}

/** The message of a compressed payload. */
export function inflated(payload: Uint8Array): Buffer {
  return inflateRawSync(Buffer.concat([payload, TAIL]), { finishFlush: constants.Z_SYNC_FLUSH })
}

/**
 * The compressed payload of this many MiB of zeros, about a thousandth of their size, made without holding them in
 * memory.
 */
export function bomb(mebibytes: number): Buffer {
  const one = Buffer.concat([deflated(Buffer.alloc(1024 * 1024)), TAIL])
  return Buffer.concat(Array.from({ length: mebibytes }, () => one)).subarray(0, -TAIL.length)
}
