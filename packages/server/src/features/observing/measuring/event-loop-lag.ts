import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks'

/** Time between two samples; a sample is this time and the delay of its timer. */
export const SAMPLE_MS = 10
/** Time between two looks at an idle event loop. */
const IDLE_LOOK_MS = 1_000
/** The event loop is idle while it works at most so long within {@link IDLE_LOOK_MS} ... */
const MAX_IDLE_WORK_MS = 25
/** ... or longer once, as for a garbage collection, but not twice in a row. */
const MAX_LONG_COUNT = 1
/** Samples of more than an hour count as an hour. */
const MAX_SAMPLE_US = 3_600_000_000

/** Delays in seconds; all are 0 before the first sample. */
export interface LagStats {
  readonly min: number
  readonly max: number
  readonly mean: number
  readonly stddev: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
}

const NO_LAG: LagStats = { min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 }

export interface LagClock {
  /** Milliseconds, of a clock that never goes back. */
  readonly now: () => number
  /** Milliseconds that the event loop has worked so far: all time that it has not waited for something to do. */
  readonly workedMs: () => number
  /** Calls `fire` after the time. Does not keep the process alive. */
  readonly wait: (fire: () => void, delayMs: number) => void
}

const PROCESS_CLOCK: LagClock = {
  now: () => performance.now(),
  workedMs: () => performance.eventLoopUtilization().active,
  wait: (fire, delayMs) => {
    setTimeout(fire, delayMs).unref()
  },
}

/**
 * Samples the delay of the event loop every 10 ms, without waking an idle process for it. An idle event loop is looked at
 * once a second: the work of the second before counts as one piece, which is the longest delay that it can have
 * caused, and the other samples as undelayed. So no delay is missed, and the first ones of a burst are told too
 * long.
 */
export class EventLoopLag {
  readonly #clock: LagClock
  readonly #samples: RecordableHistogram = createHistogram({ lowest: 1, highest: MAX_SAMPLE_US, figures: 3 })
  /** Of the samples and of their squares: the histogram takes a millisecond to compute a standard deviation. */
  #sumMs = 0
  #squaresMs = 0
  #isIdle = false
  #isStopped = false
  /** Looks in a row that found more work than that of an idle event loop. */
  #longCount = 0
  /** Up to here, time is accounted for. */
  #sampledMs = 0
  #dueMs = 0
  /** Since when the event loop is watched for being idle, and what it had worked until then. */
  #watchedMs = 0
  #workedMs = 0

  constructor(clock = PROCESS_CLOCK) {
    this.#clock = clock
  }

  /** Samples until it is stopped. Does not keep the process alive. */
  start(): void {
    this.#sampledMs = this.#clock.now()
    this.#watch(this.#sampledMs)
    this.#wait(SAMPLE_MS)
  }

  /** For good. */
  stop(): void {
    this.#isStopped = true
  }

  /** The samples since the last call. */
  read(): LagStats {
    if (this.#isIdle) this.#sampleIdle(this.#clock.now())
    const samples = this.#samples
    if (samples.count === 0) return NO_LAG
    const meanMs = this.#sumMs / samples.count
    const variance = Math.max(0, this.#squaresMs / samples.count - meanMs ** 2)
    const lag = {
      min: samples.min / 1e6,
      max: samples.max / 1e6,
      mean: meanMs / 1e3,
      stddev: Math.sqrt(variance) / 1e3,
      p50: samples.percentile(50) / 1e6,
      p90: samples.percentile(90) / 1e6,
      p99: samples.percentile(99) / 1e6,
    }
    samples.reset()
    this.#sumMs = 0
    this.#squaresMs = 0
    return lag
  }

  #wait(delayMs: number): void {
    this.#dueMs = this.#clock.now() + delayMs
    this.#clock.wait(this.#look, delayMs)
  }

  readonly #look = (): void => {
    if (this.#isStopped) return
    const nowMs = this.#clock.now()
    if (this.#isIdle) {
      this.#longCount = this.#sampleIdle(nowMs) > MAX_IDLE_WORK_MS ? this.#longCount + 1 : 0
      this.#isIdle = this.#longCount <= MAX_LONG_COUNT
    } else {
      this.#record(nowMs - this.#sampledMs)
      this.#sampledMs = nowMs
      if (nowMs - this.#watchedMs >= IDLE_LOOK_MS) this.#isIdle = this.#watch(nowMs) <= MAX_IDLE_WORK_MS
      this.#longCount = 0
    }
    this.#wait(this.#isIdle ? IDLE_LOOK_MS : SAMPLE_MS)
  }

  /** Accounts for the time since the last sample. Returns how long the event loop has worked in it. */
  #sampleIdle(nowMs: number): number {
    const workedMs = this.#watch(nowMs)
    // Later than by its own work: the machine gave the process no processor.
    const delayMs = Math.max(workedMs, nowMs - this.#dueMs)
    const undelayedMs = nowMs - this.#sampledMs - delayMs - SAMPLE_MS
    this.#sampledMs = nowMs
    this.#record(SAMPLE_MS + delayMs)
    const count = Math.min(IDLE_LOOK_MS, undelayedMs) / SAMPLE_MS
    for (let sample = 1; sample <= count; sample++) this.#record(SAMPLE_MS)
    return workedMs
  }

  /** Watches from now on. Returns how long the event loop has worked since it was watched. */
  #watch(nowMs: number): number {
    const workedMs = this.#clock.workedMs()
    const sinceMs = workedMs - this.#workedMs
    this.#watchedMs = nowMs
    this.#workedMs = workedMs
    return sinceMs
  }

  #record(sampleMs: number): void {
    this.#sumMs += sampleMs
    this.#squaresMs += sampleMs ** 2
    this.#samples.record(Math.min(MAX_SAMPLE_US, Math.max(1, Math.round(sampleMs * 1_000))))
  }
}
