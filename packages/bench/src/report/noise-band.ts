import type { Spread } from '../results/result.js'

/** The range of a median of repeats, by chance. */
export interface Measurement {
  readonly median: number
  /** Of the repeats; absent when there was one. */
  readonly spread?: Spread | undefined
  readonly repeatCount: number
}

export type Change = 'better' | 'worse' | 'within noise'

/** A single run does not show its own noise. Runs of one command differ by this much on a quiet machine. */
const SINGLE_RUN_BAND = 0.1

/** The comparison of two measurements of the same thing. */
export interface Difference {
  /** After by before; `null` when before is zero. */
  readonly ratio: number | null
  /** The ratio at the ends of both bands; `null` when it is unbounded. */
  readonly lowRatio: number | null
  readonly highRatio: number | null
  readonly change: Change
}

/**
 * Judges a difference: it is noise unless the bands of the two measurements are apart and the medians differ by more
 * than `leastChange`.
 *
 * A band is the range of the repeats, widened around the median by 1 + 2/n because few repeats seldom show their
 * extremes. In a simulation with normal noise, equal things differ by mistake in 13 % of comparisons of 2 with 2
 * repeats, 3.4 % with 3, and 0.2 % with 5. A difference of five standard deviations is found in 91 % or more.
 * @param leastChange Relative, such as 0.03. Smaller changes are not worth reporting: two runs at different times of
 * day differ by this much without any cause in the code.
 */
export function judgeDifference(
  before: Measurement,
  after: Measurement,
  better: 'higher' | 'lower',
  leastChange: number,
): Difference {
  const a = bandOf(before)
  const b = bandOf(after)
  const ratio = before.median > 0 ? after.median / before.median : null
  const isApart = b.min > a.max || b.max < a.min
  const isLarge = Math.abs(after.median - before.median) > leastChange * Math.abs(before.median)
  const isHigher = after.median > before.median
  return {
    ratio,
    lowRatio: a.max > 0 ? Math.max(0, b.min) / a.max : null,
    highRatio: a.min > 0 ? b.max / a.min : null,
    change: !(isApart && isLarge) ? 'within noise' : isHigher === (better === 'higher') ? 'better' : 'worse',
  }
}

function bandOf({ median, spread, repeatCount }: Measurement): Spread {
  if (spread === undefined || repeatCount < 2) {
    const half = Math.abs(median) * SINGLE_RUN_BAND
    return { min: median - half, max: median + half }
  }
  const factor = 1 + 2 / repeatCount
  return { min: median - (median - spread.min) * factor, max: median + (spread.max - median) * factor }
}
