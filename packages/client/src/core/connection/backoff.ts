/** Attempts in about the first minute. */
const EARLY_ATTEMPTS = 24
/** Users of a page wait for it: a service that is back must be found soon. */
const MAX_EARLY_MS = 5_000

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

/**
 * Time to wait before an attempt to connect: {@link backoffMs}, with a limit of 5 s in the first minute or so [P-10.1]. A
 * larger `minMs` is kept, for those who have more clients than their servers can greet in 5 s.
 */
export function reconnectMs(attempt: number, { minMs, maxMs, random }: BackoffOptions): number {
  const earlyMs = Math.min(maxMs, Math.max(minMs, MAX_EARLY_MS))
  return backoffMs(attempt, { minMs, maxMs: attempt < EARLY_ATTEMPTS ? earlyMs : maxMs, random })
}
