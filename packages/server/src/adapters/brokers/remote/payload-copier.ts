/** Copies of small payloads share blocks of this size. */
const BLOCK_BYTES = 65_536
/** A larger payload gets its own memory, so that little of a block is wasted. */
const MAX_SMALL_BYTES = 4_096

/**
 * Copies payloads of pending publishes into shared blocks. Payloads are released in about the order in which they came,
 * so blocks are freed soon. An array per payload would cost several times as much as the rest of a publish. Node's own
 * pool would stay alive as long as anyone else uses part of it.
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
