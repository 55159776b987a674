const WORD_BITS = 32
/** FNV-1a, 32 bits. */
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * Keys, one bit each: it never forgets one, and may take another key for one of them, the more often the more there are.
 * Memory: its bits, from the first key on.
 */
export class KeyFilter {
  readonly #bitCount: number
  #bits: Uint32Array | undefined
  #lastKey = ''

  /** @param bitCount A power of two. */
  constructor(bitCount: number) {
    this.#bitCount = bitCount
  }

  /** Cost: O(length of the key), unless it is the last one again. */
  add(key: string): void {
    if (key === this.#lastKey && this.#bits !== undefined) return
    this.#lastKey = key
    this.#bits ??= new Uint32Array(this.#bitCount / WORD_BITS)
    const bit = this.#bitOf(key)
    const word = Math.floor(bit / WORD_BITS)
    this.#bits[word] = (this.#bits[word] ?? 0) | (1 << (bit % WORD_BITS))
  }

  /** `false` when it is sure that the key was not added. */
  mayHave(key: string): boolean {
    const bit = this.#bitOf(key)
    return ((this.#bits?.[Math.floor(bit / WORD_BITS)] ?? 0) & (1 << (bit % WORD_BITS))) !== 0
  }

  #bitOf(key: string): number {
    let hash = FNV_OFFSET
    for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), FNV_PRIME)
    return (hash ^ (hash >>> 12)) & (this.#bitCount - 1)
  }
}
