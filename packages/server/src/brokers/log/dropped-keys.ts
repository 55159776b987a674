/** A power of two: one bit per hash. */
const BIT_COUNT = 2 ** 20
const WORD_BITS = 32
/** FNV-1a, 32 bits. */
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * Keys of which a log has dropped messages. It never forgets one. It may take a key for a dropped one, more often the more
 * keys there are: with 100,000 keys, one of ten. Memory: 128 KiB, from the first key on.
 */
export class DroppedKeys {
  #bits: Uint32Array | undefined
  #lastKey = ''

  /** Cost: O(length of the key), unless it is the last one again. */
  add(key: string): void {
    if (key === this.#lastKey && this.#bits !== undefined) return
    this.#lastKey = key
    this.#bits ??= new Uint32Array(BIT_COUNT / WORD_BITS)
    const bit = bitOf(key)
    const word = Math.floor(bit / WORD_BITS)
    this.#bits[word] = (this.#bits[word] ?? 0) | (1 << (bit % WORD_BITS))
  }

  /** `false` when it is sure that the key was not added. */
  mayHave(key: string): boolean {
    const bit = bitOf(key)
    return ((this.#bits?.[Math.floor(bit / WORD_BITS)] ?? 0) & (1 << (bit % WORD_BITS))) !== 0
  }
}

function bitOf(key: string): number {
  let hash = FNV_OFFSET
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), FNV_PRIME)
  return (hash ^ (hash >>> 12)) & (BIT_COUNT - 1)
}
