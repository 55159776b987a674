/**
 * Microseconds of the machine's monotonic clock, with nanosecond fractions.
 *
 * `process.hrtime` reads CLOCK_MONOTONIC, which all threads and processes of a machine share. `performance.now()` does
 * not: every worker thread counts from its own start, and mapping it through `timeOrigin` brings in the wall clock.
 */
export function nowUs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1_000_000 + nanoseconds / 1_000
}
