import type { StepBudget } from '../../patterns/pattern-matcher.js'
import type { SegmentedLog, Wants } from './segmented-log.js'

/** A search for where the newest wanted messages of a log begin, in slices. */
export class NewestSearch {
  readonly #log: SegmentedLog
  readonly #wants: Wants
  /** Everything after this offset was looked at. */
  #upTo: number
  #before: number
  readonly #count: number
  #leftCount: number

  /** @param upTo Looks at messages up to this offset. */
  constructor(log: SegmentedLog, wants: Wants, upTo: number, count: number) {
    this.#log = log
    this.#wants = wants
    this.#upTo = upTo
    this.#before = upTo
    this.#count = count
    this.#leftCount = count
  }

  /** The offset before the oldest message that was found. */
  get before(): number {
    return this.#before
  }

  /** Messages that were not found. */
  get leftCount(): number {
    return this.#leftCount
  }

  get foundCount(): number {
    return this.#count - this.#leftCount
  }

  /** Searches on, within the budget; returns whether the search is done. @param floor Messages up to it do not count. */
  advance(floor: number, budget: StepBudget): boolean {
    const { before, leftCount, lookedAfter } = this.#log.newest(
      { floor, upTo: this.#upTo, wants: this.#wants, count: this.#leftCount },
      budget,
    )
    this.#before = before ?? this.#before
    this.#leftCount = leftCount
    this.#upTo = lookedAfter
    return lookedAfter <= floor
  }
}
