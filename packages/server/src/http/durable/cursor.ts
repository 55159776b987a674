/** Cursors count intervals from here on: 9 October 2024. */
const EPOCH_MS = 1_728_432_000_000
const INTERVAL_MS = 20_000
const MAX_JITTER_MS = 3_600_000

/**
 * Names the time, so that caches between do not give a reader the same answer for ever.
 * @param last As the reader had it last: the next one is greater.
 */
export function cursorAfter(last: string | undefined): string {
  const now = Math.floor((Date.now() - EPOCH_MS) / INTERVAL_MS)
  const had = last !== undefined && /^\d{1,15}$/.test(last) ? Number(last) : -1
  if (had < now) return `${now}`
  return `${had + Math.max(1, Math.ceil((Math.random() * MAX_JITTER_MS) / INTERVAL_MS))}`
}
