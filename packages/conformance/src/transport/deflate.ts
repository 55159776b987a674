import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'

/** RFC 7692 §7.2.1: what every compressed message ends with, and leaves off the wire. */
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

/** The payload of a message of so many MiB of zeros, a thousandth of them itself; made without having them in memory. */
export function bomb(mebibytes: number): Buffer {
  const one = Buffer.concat([deflated(Buffer.alloc(1024 * 1024)), TAIL])
  return Buffer.concat(Array.from({ length: mebibytes }, () => one)).subarray(0, -TAIL.length)
}
