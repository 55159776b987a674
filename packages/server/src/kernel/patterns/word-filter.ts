const FIRST_SLOTS = 1_024
/** A filter is full above this share of taken slots: then one in four absent words looks present. */
const MAX_TAKEN_SHARE = 1 / 4
/** 64 MiB, enough for 16 million words. With more words, more absent words look present. */
const MAX_SLOTS = 1 << 26
/** A slot with this count has overflowed and stays taken. */
const MAX_COUNT = 255

/**
 * Recognises most words that are not in a collection by reading one byte. A lookup in a map of a million words costs
 * several cache misses instead.
 *
 * A counting Bloom filter with one hash. It counts every `add` of a word.
 */
export class WordFilter {
  readonly #counts: Uint8Array
  #takenCount = 0

  private constructor(slotCount: number) {
    this.#counts = new Uint8Array(slotCount)
  }

  /** An empty filter for few words. */
  static empty(): WordFilter {
    return new WordFilter(FIRST_SLOTS)
  }

  /** Whether a {@link grown} filter would be more precise. */
  get isFull(): boolean {
    return this.#takenCount > this.#counts.length * MAX_TAKEN_SHARE && this.#counts.length < MAX_SLOTS
  }

  /** A filter of twice the size. @param words All words that were added and not deleted. */
  grown(words: Iterable<string>): WordFilter {
    const filter = new WordFilter(2 * this.#counts.length)
    for (const word of words) filter.add(word)
    return filter
  }

  /** `false` means that the word is absent. */
  mayHave(word: string): boolean {
    return this.#counts[this.#slotOf(word)] !== 0
  }

  add(word: string): void {
    const slot = this.#slotOf(word)
    const count = this.#counts[slot] ?? 0
    if (count === 0) this.#takenCount++
    if (count < MAX_COUNT) this.#counts[slot] = count + 1
  }

  /** Undoes one `add` of the word. */
  delete(word: string): void {
    const slot = this.#slotOf(word)
    const count = this.#counts[slot] ?? 0
    if (count === 0 || count === MAX_COUNT) return
    this.#counts[slot] = count - 1
    if (count === 1) this.#takenCount--
  }

  /** FNV-1a. The high bits are mixed into the low ones, which choose the slot. */
  #slotOf(word: string): number {
    let hash = 0x811c9dc5
    for (let index = 0; index < word.length; index++) hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193)
    return (hash ^ (hash >>> 15)) & (this.#counts.length - 1)
  }
}
