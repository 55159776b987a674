/** Units of work of all replays in one turn of the event loop: about a millisecond. */
const UNITS_PER_TURN = 1_000
/** A page without its messages: a read that begins, and an answer. */
const PAGE_UNITS = 10

/** Shares the event loop between replays and everything else, so that large replays do not delay other connections. */
export class ReplayPacer {
  #usedUnits = 0
  /** In order of arrival; at most one per connection, whose other pages wait in its flow. */
  readonly #waiting: (() => void)[] = []
  #isScheduled = false

  /** Takes a turn for a page, if this turn of the event loop has one left and nobody waits. */
  take(): boolean {
    if (this.#waiting.length > 0 || this.#usedUnits >= UNITS_PER_TURN) return false
    this.spend(PAGE_UNITS)
    return true
  }

  /** Calls `run` when a page may be replayed, in a later turn of the event loop. */
  wait(run: () => void): void {
    this.#waiting.push(run)
    this.#schedule()
  }

  /** Notes work for replays in this turn of the event loop. */
  spend(units: number): void {
    this.#usedUnits += units
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#nextTurn())
  }

  #nextTurn(): void {
    this.#isScheduled = false
    // More was done than planned when pages were large: the next turns make up for it.
    this.#usedUnits = Math.max(0, this.#usedUnits - UNITS_PER_TURN)
    while (this.#usedUnits < UNITS_PER_TURN) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      this.spend(PAGE_UNITS)
      next()
    }
    if (this.#waiting.length > 0 || this.#usedUnits > 0) this.#schedule()
  }
}
