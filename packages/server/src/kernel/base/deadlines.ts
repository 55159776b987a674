/** A deadline; {@link Deadlines.clear} cancels it. */
export interface Deadline {
  readonly atMs: number
  readonly fire: () => void
  /** Index in the heap; -1 once it has fired or was cleared. */
  index: number
}

export interface DeadlinesOptions {
  /** The clock, in milliseconds: a monotonic one, unless the deadlines are times of day, which end when somebody sets the clock. */
  readonly now: () => number
  readonly onError: (error: unknown) => void
}

/** Deadlines within this time fire together, so that thousands of them cost few wake-ups. */
const GRANULARITY_MS = 50
/** Node fires a timer that is longer than 2^31 - 1 ms at once. */
const MAX_TIMER_MS = 2_147_483_647

/**
 * Runs any number of deadlines on one timer, in a binary heap: setting and clearing cost O(log n). A cleared deadline
 * frees its memory at once. Deadlines fire at most 50 ms late and never early. They do not keep the process alive.
 */
export class Deadlines {
  /** The clock, in milliseconds. */
  readonly now: () => number
  readonly #onError: (error: unknown) => void
  readonly #heap: Deadline[] = []
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Number.POSITIVE_INFINITY

  constructor(options: DeadlinesOptions) {
    this.now = options.now
    this.#onError = options.onError
  }

  get size(): number {
    return this.#heap.length
  }

  /** Calls `fire` once, when the clock reaches `atMs`. */
  set(atMs: number, fire: () => void): Deadline {
    const deadline: Deadline = { atMs, fire, index: this.#heap.length }
    this.#heap.push(deadline)
    this.#up(deadline)
    this.#arm()
    return deadline
  }

  /** Cancels a deadline; a no-op once it has fired, and for one of other deadlines. */
  clear(deadline: Deadline): void {
    const { index } = deadline
    if (this.#heap[index] !== deadline) return
    deadline.index = -1
    const last = this.#heap.pop()
    if (last === undefined || last === deadline) return
    this.#place(last, index)
    this.#up(last)
    this.#down(last)
  }

  stop(): void {
    for (const deadline of this.#heap) deadline.index = -1
    this.#heap.length = 0
    clearTimeout(this.#timer)
    this.#timerAtMs = Number.POSITIVE_INFINITY
  }

  #arm(): void {
    const earliest = this.#heap[0]
    if (earliest === undefined || earliest.atMs >= this.#timerAtMs) return
    clearTimeout(this.#timer)
    const delayMs = Math.min(MAX_TIMER_MS, Math.max(GRANULARITY_MS, earliest.atMs - this.now()))
    this.#timerAtMs = this.now() + delayMs
    this.#timer = setTimeout(() => this.#fireDue(), delayMs)
    this.#timer.unref()
  }

  #fireDue(): void {
    this.#timerAtMs = Number.POSITIVE_INFINITY
    const nowMs = this.now()
    for (let due = this.#heap[0]; due !== undefined && due.atMs <= nowMs; due = this.#heap[0]) {
      this.clear(due)
      try {
        due.fire()
      } catch (error) {
        this.#onError(error)
      }
    }
    this.#arm()
  }

  #up(deadline: Deadline): void {
    while (deadline.index > 0) {
      const parent = this.#heap[(deadline.index - 1) >> 1]
      if (parent === undefined || parent.atMs <= deadline.atMs) return
      this.#swap(parent, deadline)
    }
  }

  #down(deadline: Deadline): void {
    for (;;) {
      const left = this.#heap[2 * deadline.index + 1]
      const right = this.#heap[2 * deadline.index + 2]
      const child = right !== undefined && left !== undefined && right.atMs < left.atMs ? right : left
      if (child === undefined || child.atMs >= deadline.atMs) return
      this.#swap(deadline, child)
    }
  }

  #swap(upper: Deadline, lower: Deadline): void {
    const { index } = upper
    this.#place(upper, lower.index)
    this.#place(lower, index)
  }

  #place(deadline: Deadline, index: number): void {
    this.#heap[index] = deadline
    deadline.index = index
  }
}
