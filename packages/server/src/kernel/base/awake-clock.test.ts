import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { AwakeClock } from './awake-clock.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** The process stands still: the time passes, and no timer is called. */
function standStill(ms: number): void {
  vi.setSystemTime(Date.now() + ms)
  const before = performance.now()
  vi.spyOn(performance, 'now').mockImplementation(() => before + ms)
}

it('runs with the time while the process is awake, and stands while it is not needed', () => {
  let isNeeded = true
  const clock = new AwakeClock(() => isNeeded)
  clock.start()
  vi.advanceTimersByTime(990)
  expect(clock.at(performance.now())).toBe(990)
  isNeeded = false
  vi.advanceTimersByTime(10)
  expect(clock.at(performance.now())).toBe(1_000)
  vi.advanceTimersByTime(5_000)
  expect(clock.at(performance.now())).toBe(1_000)
  expect(vi.getTimerCount()).toBe(0)
  isNeeded = true
  clock.start()
  vi.advanceTimersByTime(25)
  expect(clock.at(performance.now())).toBe(1_025)
  clock.stop()
})

it('does not count the time in which the process stands still', () => {
  const clock = new AwakeClock(() => true)
  clock.start()
  vi.advanceTimersByTime(1_000)
  standStill(5_000)
  expect(clock.at(performance.now())).toBe(1_100)
  vi.restoreAllMocks()
  clock.stop()
})
