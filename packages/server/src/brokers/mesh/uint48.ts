/** Numbers on links take 6 bytes, little endian: no counter of ours gets past them. */
export const UINT48_BYTES = 6

const TWO_32 = 0x1_0000_0000

/** Faster than the methods of a Buffer, for numbers that stand in every message. */
export function writeUint48(bytes: Uint8Array, at: number, value: number): void {
  const high = Math.floor(value / TWO_32)
  const low = value - high * TWO_32
  bytes[at] = low
  bytes[at + 1] = low >>> 8
  bytes[at + 2] = low >>> 16
  bytes[at + 3] = low >>> 24
  bytes[at + 4] = high
  bytes[at + 5] = high >>> 8
}

/** The number that stands there; beyond the end of the bytes it is not a number. */
export function readUint48(bytes: Uint8Array, at: number): number {
  const low =
    (bytes[at] as number) +
    (bytes[at + 1] as number) * 0x100 +
    (bytes[at + 2] as number) * 0x1_0000 +
    (bytes[at + 3] as number) * 0x100_0000
  return low + (bytes[at + 4] as number) * TWO_32 + (bytes[at + 5] as number) * 0x100_0000_0000
}
