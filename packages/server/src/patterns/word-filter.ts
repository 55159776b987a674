const FIRST_SLOTS = 1_024
/** A filter is full when more of its slots are taken: then one in four of the words that are not there may seem to be. */
const MAX_TAKEN_SHARE = 1 / 4
/** 64 MiB, enough for 16 million words; with more of them, more that are not there seem to be. */
const MAX_SLOTS = 1 << 26
/** A slot that has counted so far has lost count, and stays taken. */
const MAX_COUNT = 255

/**
 * Knows most of the words that are not in a collection, by a look at one byte: a map of a million words, asked for one that it
 * does not have, makes the processor wait for memory several times.
 *
 * A counting Bloom filter with one hash. A word counts as often as it was added.
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

  /** Whether {@link grown} would answer better. */
  get isFull(): boolean {
    return this.#takenCount > this.#counts.length * MAX_TAKEN_SHARE && this.#counts.length < MAX_SLOTS
  }

  /** A filter of twice the size that has these words, which are all that were added and not deleted. */
  grown(words: Iterable<string>): WordFilter {
    const filter = new WordFilter(2 * this.#counts.length)
    for (const word of words) filter.add(word)
    return filter
  }

  /** `false`: the word is not there. */
  mayHave(word: string): boolean {
    return this.#counts[this.#slotOf(word)] !== 0
  }

  add(word: string): void {
    const slot = this.#slotOf(word)
    const count = this.#counts[slot] ?? 0
    if (count === 0) this.#takenCount++
    if (count < MAX_COUNT) this.#counts[slot] = count + 1
  }

  /** Takes back that a word was added. */
  delete(word: string): void {
    const slot = this.#slotOf(word)
    const count = this.#counts[slot] ?? 0
    if (count === 0 || count === MAX_COUNT) return
    this.#counts[slot] = count - 1
    if (count === 1) this.#takenCount--
  }

  /** FNV-1a, its high bits mixed into the low ones, which choose the slot. */
  #slotOf(word: string): number {
    let hash = 0x811c9dc5
    for (let index = 0; index < word.length; index++) hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193)
    return (hash ^ (hash >>> 15)) & (this.#counts.length - 1)
  }
}
