import { expect, it } from 'vitest'
import { createWallClock } from './wall-clock.js'

it('agrees with the system, in microseconds', () => {
  const wallUs = createWallClock()
  const [before, us, after] = [Date.now(), wallUs(), Date.now()]
  expect(us / 1_000).toBeGreaterThan(before - 1)
  expect(us / 1_000).toBeLessThan(after + 2)
  const steps = Array.from({ length: 50 }, () => wallUs())
  expect(steps).toEqual(steps.toSorted((a, b) => a - b))
})
