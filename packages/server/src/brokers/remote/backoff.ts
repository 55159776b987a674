/** Bounds of {@link fullJitterMs}. */
export interface BackoffOptions {
  /** Longest wait before the second try. */
  readonly baseMs: number
  /** Longest wait before any. */
  readonly maxMs: number
  /** From 0 up to 1. */
  readonly random?: () => number
}

/**
 * Time to wait after so many tries have failed: any up to a bound that doubles, so that nodes which lost the same broker
 * do not come back to it all at once.
 */
export function fullJitterMs(failedCount: number, { baseMs, maxMs, random = Math.random }: BackoffOptions): number {
  return random() * Math.min(maxMs, baseMs * 2 ** Math.max(0, failedCount - 1))
}
