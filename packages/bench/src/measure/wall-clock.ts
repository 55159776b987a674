import { nowUs } from './clock.js'

/** The clock's steps that are looked at; the best of them counts. */
const STEPS = 5

/**
 * A clock of microseconds since 1970, by the system's wall clock at the time of this call, and steady from then on.
 * `Date.now()` alone has milliseconds. Cost: up to {@link STEPS} milliseconds, once.
 */
export function createWallClock(): () => number {
  let aheadUs = Number.NEGATIVE_INFINITY
  for (let step = 0; step < STEPS; step++) {
    const beforeMs = Date.now()
    let atMs = beforeMs
    while (atMs === beforeMs) atMs = Date.now()
    // The step is noticed late, never early.
    aheadUs = Math.max(aheadUs, atMs * 1_000 - nowUs())
  }
  return () => nowUs() + aheadUs
}
