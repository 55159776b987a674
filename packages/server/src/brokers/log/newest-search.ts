import type { StepBudget } from '../../patterns/pattern-matcher.js'
import type { Search, SegmentedLog } from './segmented-log.js'

/** A search for where the newest wanted messages of a log begin, in slices. */
export class NewestSearch {
  readonly #log: SegmentedLog
  readonly #search: Pick<Search, 'wants' | 'key'>
  /** Everything after this offset was looked at. */
  #upTo: number
  #before: number
  readonly #count: number
  #leftCount: number

  constructor(log: SegmentedLog, search: Search, count: number) {
    const { upTo } = search
    this.#log = log
    this.#search = search
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
      { ...this.#search, floor, upTo: this.#upTo, count: this.#leftCount },
      budget,
    )
    this.#before = before ?? this.#before
    this.#leftCount = leftCount
    this.#upTo = lookedAfter
    return lookedAfter <= floor
  }
}
