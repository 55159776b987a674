/** Copies of small payloads are cut from blocks of this size. */
const BLOCK_BYTES = 65_536
/** Larger ones get memory of their own, so that the end of a block is not wasted. */
const MAX_SMALL_BYTES = 4_096

/**
 * Copies payloads that wait for a while and go in about the order in which they came: a block is free again when the last one in it has gone. An
 * array of its own for each takes the engine several times as long as the rest of a publish, and Node's own pool would be held by what others cut
 * from it.
 */
export class PayloadCopier {
  #block = Buffer.alloc(0)
  #used = 0

  copy(payload: Uint8Array): Uint8Array {
    const { length } = payload
    if (length > MAX_SMALL_BYTES) return new Uint8Array(payload)
    if (this.#used + length > this.#block.length) {
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
      this.#used = 0
    }
    const at = this.#used
    this.#used += length
    this.#block.set(payload, at)
    return this.#block.subarray(at, this.#used)
  }
}
