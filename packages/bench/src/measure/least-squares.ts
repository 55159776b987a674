/** One measured window: how often each thing happened, and what all of it took. */
export interface Observation {
  /** Counts, in the order of the coefficients. */
  readonly counts: readonly number[]
  readonly total: number
  /** Expected absolute error of the total, such as a tick of the clock; default 0. */
  readonly noise?: number
}

/** A fitted line. */
export interface Fit {
  /** What one of each costs; never below 0. */
  readonly coefficients: readonly number[]
  /** Root mean square of (predicted - measured) / measured; `null` when there are no more windows than coefficients. */
  readonly residual: number | null
}

/** Below this share of the largest, a pivot is noise: the windows do not tell two coefficients apart. */
const SINGULAR = 1e-12

/**
 * Fits `total = sum of count x coefficient` by least squares of the relative error, so a short window counts like a long
 * one. A cost cannot be negative: a coefficient that would be is 0, and the others are fitted anew.
 * @throws {RangeError} for windows without a cost, or of different length.
 */
export function leastSquares(observations: readonly Observation[]): Fit {
  const width = observations[0]?.counts.length ?? 0
  for (const { counts, total, noise = 0 } of observations) {
    if (counts.length !== width || !(total + noise > 0) || total < 0) {
      throw new RangeError('an observation needs its counts and a cost above 0')
    }
  }
  let free = Array.from({ length: width }, (_, index) => index).filter((index) =>
    observations.some(({ counts }) => (counts[index] ?? 0) > 0),
  )
  for (;;) {
    const solved = solve(observations, free)
    const worst = free.reduce(
      (least, index) => ((solved[index] ?? 0) < (solved[least] ?? 0) ? index : least),
      free[0] ?? 0,
    )
    if (free.length === 0 || (solved[worst] ?? 0) >= 0)
      return { coefficients: solved, residual: residual(observations, solved) }
    free = free.filter((index) => index !== worst)
  }
}

/** The normal equations of the chosen coefficients; the others are 0. */
function solve(observations: readonly Observation[], free: readonly number[]): number[] {
  const width = observations[0]?.counts.length ?? 0
  const at = (one: Observation, index: number) => (one.counts[index] ?? 0) / weightOf(one)
  // Columns of very different size (bytes, seconds) are scaled to 1 first.
  const scales = free.map((index) => Math.max(...observations.map((one) => at(one, index))))
  const column = (one: Observation, place: number) => at(one, free[place] ?? 0) / (scales[place] ?? 1)
  const rows = free.map((_, row) => [
    ...free.map((_, other) => sum(observations, (one) => column(one, row) * column(one, other))),
    sum(observations, (one) => (column(one, row) * one.total) / weightOf(one)),
  ])
  const scaled = eliminate(rows)
  const result = new Array<number>(width).fill(0)
  for (const [place, index] of free.entries()) result[index] = (scaled[place] ?? 0) / (scales[place] ?? 1)
  return result
}

/** Gauss elimination with pivots; what cannot be told apart is 0. @param rows Each with its right side at the end. */
function eliminate(rows: number[][]): number[] {
  const size = rows.length
  const largest = Math.max(0, ...rows.map((row, index) => Math.abs(row[index] ?? 0)))
  for (let place = 0; place < size; place++) {
    const pivotPlace = rows.reduce(
      (best, row, index) =>
        index >= place && Math.abs(row[place] ?? 0) > Math.abs(rows[best]?.[place] ?? 0) ? index : best,
      place,
    )
    const pivot = rows[pivotPlace] ?? []
    rows[pivotPlace] = rows[place] ?? []
    rows[place] = pivot
    const head = pivot[place] ?? 0
    if (Math.abs(head) <= largest * SINGULAR) {
      pivot.fill(0)
      continue
    }
    for (const [index, row] of rows.entries()) {
      const factor = index === place ? 0 : (row[place] ?? 0) / head
      if (factor !== 0)
        for (let cell = place; cell <= size; cell++) row[cell] = (row[cell] ?? 0) - factor * (pivot[cell] ?? 0)
    }
  }
  return rows.map((row, index) => (row[index] === 0 ? 0 : (row[size] ?? 0) / (row[index] ?? 1)))
}

function residual(observations: readonly Observation[], coefficients: readonly number[]): number | null {
  const unknowns = coefficients.filter((value) => value > 0).length
  if (observations.length <= unknowns) return null
  const squares = sum(observations, (one) => {
    const predicted = one.counts.reduce((all, count, index) => all + count * (coefficients[index] ?? 0), 0)
    return ((predicted - one.total) / weightOf(one)) ** 2
  })
  return Math.sqrt(squares / observations.length)
}

function weightOf({ total, noise = 0 }: Observation): number {
  return total + noise
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((all, item) => all + of(item), 0)
}
