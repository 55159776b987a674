import { vi } from 'vitest'

/** Timeout of eventual facts, generous enough for a busy machine. */
const TIMEOUT_MS = 10_000

/** Repeats an assertion until it holds. */
export function eventually<T>(assertion: () => T | Promise<T>, timeoutMs: number = TIMEOUT_MS): Promise<T> {
  return vi.waitFor(assertion, { timeout: timeoutMs, interval: 5 })
}
