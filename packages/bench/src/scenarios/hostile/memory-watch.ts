import { RunError } from '../../exit-codes.js'
import { processUsage } from '../../measure/process-usage.js'

const INTERVAL_MS = 100

/** One look at the memory of a process. */
export interface MemoryPoint {
  readonly atMs: number
  readonly value: number
}

/** Looks at the resident memory of a process all the time. */
export class MemoryWatch {
  readonly points: MemoryPoint[] = []
  readonly #pid: number
  readonly #startMs = performance.now()
  readonly #timer: NodeJS.Timeout

  constructor(pid: number) {
    this.#pid = pid
    this.#look()
    this.#timer = setInterval(() => this.#look(), INTERVAL_MS)
  }

  /** Largest resident memory since this moment. */
  peakBytesSince(atMs: number): number {
    return this.points.filter((point) => point.atMs >= atMs).reduce((peak, { value }) => Math.max(peak, value), 0)
  }

  /** Milliseconds since the watch began. */
  get nowMs(): number {
    return performance.now() - this.#startMs
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    try {
      this.points.push({ atMs: Math.round(this.nowMs), value: processUsage(this.#pid).rssBytes })
    } catch (error) {
      if (!(error instanceof RunError)) throw error
      this.stop() // The process has ended, which the measurement reports.
    }
  }
}
