/** Bounds of {@link fullJitterMs}. */
export interface BackoffOptions {
  /** Longest wait before the second attempt. */
  readonly baseMs: number
  /** Longest wait before any attempt. */
  readonly maxMs: number
  /** A random number in [0, 1). */
  readonly random?: () => number
}

/**
 * Time to wait after this many failed attempts: a random time up to a bound that doubles. So nodes that lost the same
 * broker do not return to it all at once.
 */
export function fullJitterMs(failedCount: number, { baseMs, maxMs, random = Math.random }: BackoffOptions): number {
  return random() * Math.min(maxMs, baseMs * 2 ** Math.max(0, failedCount - 1))
}
