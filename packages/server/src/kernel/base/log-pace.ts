/** Paces the log lines about events that others cause: one per interval, which says how many were left out before it. */
export class LogPace {
  readonly #intervalMs: number
  #loggedAtMs = Number.NEGATIVE_INFINITY
  #leftOutCount = 0

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /**
   * @param count Events that this line is about.
   * @param nowMs A clock that never goes back.
   * @returns How many events got no line since the last one; `undefined` when these get none either.
   */
  take(count = 1, nowMs = performance.now()): number | undefined {
    if (nowMs < this.#loggedAtMs + this.#intervalMs) {
      this.#leftOutCount += count
      return undefined
    }
    const leftOutCount = this.#leftOutCount
    this.#loggedAtMs = nowMs
    this.#leftOutCount = 0
    return leftOutCount
  }
}
