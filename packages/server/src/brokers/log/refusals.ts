import type { Wants } from './segmented-log.js'

/** A message that has an offset, and is not in the log: it was refused. */
interface Refusal {
  readonly offset: number
  /** Its key, or a pattern of the keys that it may have. */
  readonly pattern: string
}

/** With more of them, reads across the oldest ones report a gap whatever their patterns. */
const MAX_REFUSALS = 1_000

/** The refused messages of a log. */
export class Refusals {
  /** In order of their offsets. */
  #refusals: Refusal[] = []
  /** Messages of any key may have been refused at or before this offset. */
  #refusedUpTo = 0

  /**
   * @param offset Greater than any before.
   * @param heldAfter Reads begin after this offset, or later.
   */
  add(offset: number, pattern: string, heldAfter: number): void {
    this.#refusals = [...this.#refusals.filter((refusal) => refusal.offset > heldAfter), { offset, pattern }]
    if (this.#refusals.length > MAX_REFUSALS) this.#refusedUpTo = this.#refusals.shift()?.offset ?? offset
  }

  /** Whether a message that is wanted may have been refused between these offsets. */
  has(after: number, upTo: number, isMatch: Wants): boolean {
    if (after < this.#refusedUpTo) return true
    const budget = { left: Number.POSITIVE_INFINITY }
    return this.#refusals.some(
      ({ offset, pattern }) =>
        offset > after && offset <= upTo && (pattern === '#' || isMatch(pattern, Number.POSITIVE_INFINITY, budget)),
    )
  }
}
