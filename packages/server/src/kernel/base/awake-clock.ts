/** The process stands still while its timer is later than this. That time does not count. */
const MAX_TICK_MS = 100
const TICK_MS = 50

/**
 * A clock that stands while the process does: with its event loop blocked, without a processor, or stopped. It says how long
 * somebody else took, and does not blame them for what this process has not read. From {@link start} on it runs as long as it
 * is needed, and costs a timer.
 */
export class AwakeClock {
  readonly #isNeeded: () => boolean
  #timer: NodeJS.Timeout | undefined
  #tickMs = 0
  #countedMs = 0

  constructor(isNeeded: () => boolean) {
    this.#isNeeded = isNeeded
  }

  /** Does nothing while it runs. */
  start(): void {
    if (this.#timer !== undefined) return
    this.#tickMs = performance.now()
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Milliseconds that the process was awake until now. @param nowMs `performance.now()`. */
  at(nowMs: number): number {
    return this.#timer === undefined ? this.#countedMs : this.#countedMs + Math.min(MAX_TICK_MS, nowMs - this.#tickMs)
  }

  #tick(): void {
    const nowMs = performance.now()
    this.#countedMs = this.at(nowMs)
    this.#tickMs = nowMs
    if (!this.#isNeeded()) this.stop()
  }
}
