import type { Histogram, RecordableHistogram } from 'node:perf_hooks'
import { type EventLoopUtilization, performance } from 'node:perf_hooks'
import { nowUs } from './clock.js'
import { createLatencyHistogram, recordUs } from './latency-histogram.js'

/** Timers have a resolution of one millisecond: a lag below that is noise. */
const SAMPLE_INTERVAL_MS = 10

/** Watches the event loop of its own thread: how late timers fire, and how much of the time it works. */
export class EventLoopMeter {
  readonly #timer: NodeJS.Timeout
  #lag: RecordableHistogram = createLatencyHistogram()
  #utilization: EventLoopUtilization = performance.eventLoopUtilization()
  #lastUs = nowUs()

  constructor() {
    this.#timer = setInterval(() => this.#sample(), SAMPLE_INTERVAL_MS)
    this.#timer.unref()
  }

  /** Forgets what was measured so far. */
  reset(): void {
    this.#lag = createLatencyHistogram()
    this.#utilization = performance.eventLoopUtilization()
    this.#lastUs = nowUs()
  }

  /** How late a timer fired, in microseconds, sampled every 10 ms. */
  get lag(): Histogram {
    return this.#lag
  }

  /** Share of the time since the last reset in which the thread was busy, 0 to 1. */
  get utilization(): number {
    return performance.eventLoopUtilization(this.#utilization).utilization
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #sample(): void {
    const now = nowUs()
    recordUs(this.#lag, now - this.#lastUs - SAMPLE_INTERVAL_MS * 1_000)
    this.#lastUs = now
  }
}
