/** Upper bounds of the buckets, in seconds: a quick node answers within the first, a stuck broker fills the last. */
export const DURATION_BOUNDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const

export interface HistogramStats {
  /** Upper bounds of the buckets, in seconds. */
  readonly bounds: readonly number[]
  /** Durations up to each of the bounds, those of smaller bounds included; the last one counts all. */
  readonly cumulativeCounts: readonly number[]
  readonly count: number
  readonly sumSeconds: number
}

/** Durations, counted in a plain array. It is converted only when somebody reads it. */
export class Histogram {
  readonly #bounds: readonly number[]
  readonly #boundsMs: readonly number[]
  readonly #counts: Float64Array
  #sumMs = 0

  /** @param bounds In seconds, ascending. */
  constructor(bounds: readonly number[] = DURATION_BOUNDS) {
    this.#bounds = bounds
    this.#boundsMs = bounds.map((seconds) => seconds * 1_000)
    this.#counts = new Float64Array(bounds.length + 1)
  }

  /** @param weight How many durations this one stands for. */
  observe(durationMs: number, weight = 1): void {
    // A clock of another machine, or a reordering of two reads, must not make a duration negative.
    const ms = Math.max(0, durationMs)
    let bucket = 0
    while (bucket < this.#boundsMs.length && ms > (this.#boundsMs[bucket] ?? 0)) bucket++
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + weight
    this.#sumMs += ms * weight
  }

  stats(): HistogramStats {
    let count = 0
    const cumulativeCounts = Array.from(this.#counts, (own) => (count += own))
    return { bounds: this.#bounds, cumulativeCounts, count, sumSeconds: this.#sumMs / 1_000 }
  }
}
