import fc from 'fast-check'
import { expect, it } from 'vitest'
import { backoffMs } from './backoff.js'

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
