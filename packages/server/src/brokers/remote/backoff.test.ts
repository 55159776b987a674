import { expect, it } from 'vitest'
import { fullJitterMs } from './backoff.js'

it('doubles the bound with every failure, up to the longest', () => {
  const longest = { baseMs: 100, maxMs: 1_000, random: () => 1 }
  expect([1, 2, 3, 4, 5, 1_000].map((failed) => fullJitterMs(failed, longest))).toEqual([
    100, 200, 400, 800, 1_000, 1_000,
  ])
  expect(fullJitterMs(3, { baseMs: 100, maxMs: 1_000, random: () => 0.25 })).toBe(100)
  expect(fullJitterMs(3, { baseMs: 100, maxMs: 1_000, random: () => 0 })).toBe(0)
})
