import { vi } from 'vitest'

/** Time for facts that come about by themselves; far above what they take, so that a busy machine changes nothing. */
const TIMEOUT_MS = 10_000

/** Repeats an assertion until it holds. */
export function eventually<T>(assertion: () => T | Promise<T>, timeoutMs: number = TIMEOUT_MS): Promise<T> {
  return vi.waitFor(assertion, { timeout: timeoutMs, interval: 5 })
}
