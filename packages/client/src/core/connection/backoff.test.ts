import fc from 'fast-check'
import { expect, it } from 'vitest'
import { backoffMs, reconnectMs } from './backoff.js'

it('doubles its limit up to the maximum, and returns a random part of it', () => {
  const bounds = [0, 1, 2, 5, 6, 50, 5_000].map((attempt) =>
    backoffMs(attempt, { minMs: 500, maxMs: 20_000, random: () => 1 }),
  )
  expect(bounds).toEqual([500, 1_000, 2_000, 16_000, 20_000, 20_000, 20_000])
})

it('stays within the limit and spreads over all of it', () => {
  fc.assert(
    fc.property(fc.nat(100), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, random) => {
      const waitMs = backoffMs(attempt, { minMs: 500, maxMs: 20_000, random: () => random })
      expect(waitMs).toBe(random * Math.min(20_000, 500 * 2 ** attempt))
    }),
  )
})

// After an outage of 4 s of all nodes, pages were back after 12 and 20 s.
it('waits at most 5 s in the first minute of an outage, unless the app wants more or less', () => {
  const boundsOf = (minMs: number, maxMs: number) =>
    [0, 3, 4, 23, 24, 5_000].map((attempt) => reconnectMs(attempt, { minMs, maxMs, random: () => 1 }))
  expect(boundsOf(500, 20_000)).toEqual([500, 4_000, 5_000, 5_000, 20_000, 20_000])
  expect(boundsOf(500, 2_000)).toEqual([500, 2_000, 2_000, 2_000, 2_000, 2_000])
  expect(boundsOf(20_000, 60_000)).toEqual([20_000, 20_000, 20_000, 20_000, 60_000, 60_000])
})

it('makes about 24 attempts in that minute', () => {
  const waits = Array.from({ length: 24 }, (_, attempt) =>
    reconnectMs(attempt, { minMs: 500, maxMs: 20_000, random: () => 0.5 }),
  )
  expect(waits.reduce((sum, waitMs) => sum + waitMs)).toBe(53_750)
})
