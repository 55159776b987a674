const LEAST_BYTES = 1_024

/**
 * Copies bytes behind the first `length` ones of a buffer, or of one with twice the room: so to add piece after piece costs
 * O(bytes). Views of what is there stay as they are.
 */
export function grownBytes(buffer: Buffer, length: number, added: Uint8Array): Buffer {
  const end = length + added.length
  let grown = buffer
  if (end > buffer.length) {
    grown = Buffer.allocUnsafeSlow(Math.max(LEAST_BYTES, 2 * end))
    grown.set(buffer.subarray(0, length))
  }
  grown.set(added, length)
  return grown
}
