/** Limits of {@link backoffMs}. */
export interface BackoffOptions {
  readonly minMs: number
  readonly maxMs: number
  readonly random: () => number
}

/**
 * Time to wait before attempt number `attempt`, counted from 0: uniform between 0 and a doubling limit ("full jitter").
 * It spreads the clients of a restarted server over time.
 */
export function backoffMs(attempt: number, { minMs, maxMs, random }: BackoffOptions): number {
  return random() * Math.min(maxMs, minMs * 2 ** attempt)
}
