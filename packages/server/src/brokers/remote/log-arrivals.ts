interface Waiting {
  readonly offset: number
  settle(): void
}

/**
 * Those who wait until a node's copy of the log has come to a place. Nodes follow the log side by side: a client that comes from another
 * node may have been given what has not come to this one yet.
 */
export class LogArrivals {
  readonly #waiting = new Set<Waiting>()

  /** Resolves when the place has been reached, when the log has begun anew, or after `timeoutMs`. */
  until(offset: number, timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const waiting: Waiting = {
        offset,
        settle: () => {
          clearTimeout(timer)
          this.#waiting.delete(waiting)
          resolve()
        },
      }
      const timer = setTimeout(waiting.settle, timeoutMs)
      this.#waiting.add(waiting)
    })
  }

  /** The copy has come to this place. Cost: nothing when nobody waits. */
  reached(offset: number): void {
    if (this.#waiting.size === 0) return
    for (const waiting of this.#waiting) if (waiting.offset <= offset) waiting.settle()
  }

  /** What they wait for will not come. */
  giveUp(): void {
    for (const waiting of this.#waiting) waiting.settle()
  }
}
