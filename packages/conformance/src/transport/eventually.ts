import { vi } from 'vitest'

/** Timeout of eventual facts, generous enough for a busy machine. An emulated one needs more, as in `vitest.config.ts`. */
const TIMEOUT_MS = 20_000 * Number(process.env.WEBMQ_TEST_PATIENCE ?? 1)

/** Repeats an assertion until it holds. */
export function eventually<T>(assertion: () => T | Promise<T>, timeoutMs: number = TIMEOUT_MS): Promise<T> {
  return vi.waitFor(assertion, { timeout: timeoutMs, interval: 5 })
}
