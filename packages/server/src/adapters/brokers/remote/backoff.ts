export interface BackoffOptions {
  readonly baseMs: number
  readonly maxMs: number
  /** A random number in [0, 1). */
  readonly random?: () => number
}

/**
 * Between two attempts to reach the broker. A node is one connection of few, unlike a browser, so it may try often: publishes
 * wait for `brokerTimeoutMs` (5 s), and a longer pause would refuse them although the broker is back.
 */
export const BROKER_BACKOFF = { baseMs: 100, maxMs: 1_000 } as const

/**
 * Time to wait after this many failed attempts: a random time up to a bound that doubles. So nodes that lost the same
 * broker do not return to it all at once.
 */
export function fullJitterMs(failedCount: number, { baseMs, maxMs, random = Math.random }: BackoffOptions): number {
  return random() * Math.min(maxMs, baseMs * 2 ** Math.max(0, failedCount - 1))
}
