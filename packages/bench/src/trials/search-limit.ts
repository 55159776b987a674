export interface LimitSearch {
  /** Tried first. */
  readonly start: number
  readonly max: number
  /** Precision at which the search ends, as a share of the limit. */
  readonly precisionRatio: number
}

/**
 * The largest number that holds: doubles until one fails, then bisects between the largest that held and the smallest
 * that failed. 0 when not even one holds.
 */
export async function searchLimit(
  { start, max, precisionRatio }: LimitSearch,
  holds: (count: number) => Promise<boolean>,
): Promise<number> {
  let held = 0
  let failed = Number.POSITIVE_INFINITY
  for (let next = Math.min(start, max); failed === Number.POSITIVE_INFINITY && next > held; ) {
    if (await holds(next)) held = next
    else failed = next
    next = Math.min(max, held * 2)
  }
  if (failed === Number.POSITIVE_INFINITY) return held
  while (failed - held > Math.max(1, held * precisionRatio)) {
    const middle = Math.floor((held + failed) / 2)
    if (await holds(middle)) held = middle
    else failed = middle
  }
  return held
}
