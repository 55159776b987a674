/** Bounds of {@link backoffMs}. */
export interface BackoffOptions {
  readonly minMs: number
  readonly maxMs: number
  readonly random: () => number
}

/**
 * Time to wait before attempt number `attempt`, counted from 0: uniform between 0 and the doubling bound ("full
 * jitter"), so that the clients of a server that went away spread out instead of returning together.
 */
export function backoffMs(attempt: number, { minMs, maxMs, random }: BackoffOptions): number {
  return random() * Math.min(maxMs, minMs * 2 ** attempt)
}
