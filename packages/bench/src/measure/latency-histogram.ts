import { createHistogram, type Histogram, type RecordableHistogram } from 'node:perf_hooks'

/** Three significant figures: a value is known to 0.1 %. */
const FIGURES = 3
/** Longer than any run. */
const HIGHEST_US = 3_600_000_000

/** The percentiles of one distribution in milliseconds; all `null` when nothing was recorded. */
export interface LatencySummary {
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly max: number | null
}

/**
 * A distribution of microseconds: fixed memory, about 0.2 us per record, sent between threads as it is, merged without
 * loss by `add`.
 */
export function createLatencyHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: HIGHEST_US, figures: FIGURES })
}

/** Records one duration; below one microsecond counts as one, above an hour as an hour. */
export function recordUs(histogram: RecordableHistogram, durationUs: number): void {
  histogram.record(Math.min(HIGHEST_US, Math.max(1, Math.round(durationUs))))
}

/** The distribution of everything recorded in any of the histograms. */
export function mergeHistograms(histograms: Iterable<Histogram>): RecordableHistogram {
  const merged = createLatencyHistogram()
  for (const histogram of histograms) {
    // `add` only reads its argument; a histogram that came from another thread has all it reads.
    if (histogram.count > 0) merged.add(histogram as RecordableHistogram)
  }
  return merged
}

/** Percentiles in milliseconds with microsecond resolution. */
export function summarizeLatency(histogram: Histogram): LatencySummary {
  if (histogram.count === 0) return { p50: null, p95: null, p99: null, max: null }
  // A percentile is reported as the upper end of its 0.1 % bucket and must not exceed the largest value.
  const at = (percentile: number) => Math.min(histogram.percentile(percentile), histogram.max) / 1_000
  return { p50: at(50), p95: at(95), p99: at(99), max: histogram.max / 1_000 }
}

/** A distribution as bars: bar n is from `edgesMs[n]` to `edgesMs[n + 1]`, and `shares[n]` of all values are in it. */
export interface LatencyBars {
  readonly edgesMs: readonly number[]
  readonly shares: readonly number[]
}

const BARS = 40
/** A share is known to a thousandth. */
const QUANTILES = 1_000

/** Bars of equal ratio from the smallest value to the largest; `null` when nothing was recorded. */
export function barsOf(histogram: Histogram): LatencyBars | null {
  if (histogram.count === 0) return null
  const low = Math.max(1, histogram.min)
  const high = Math.max(low + 1, histogram.max)
  const edgesUs = Array.from({ length: BARS + 1 }, (_, edge) => low * (high / low) ** (edge / BARS))
  const shares = new Array<number>(BARS).fill(0)
  for (let quantile = 1; quantile <= QUANTILES; quantile++) {
    const valueUs = Math.min(histogram.percentile((100 * (quantile - 0.5)) / QUANTILES), high)
    const bar = Math.min(BARS - 1, Math.max(0, Math.floor((BARS * Math.log(valueUs / low)) / Math.log(high / low))))
    shares[bar] = (shares[bar] ?? 0) + 1
  }
  return { edgesMs: edgesUs.map((us) => us / 1_000), shares: shares.map((count) => count / QUANTILES) }
}
