import { expect, it } from 'vitest'
import { resolveOptions } from '../../../doors/options/options.js'
import { BROKER_BACKOFF, fullJitterMs } from './backoff.js'

it('doubles the bound with every failure, up to the longest', () => {
  const longest = { baseMs: 100, maxMs: 1_000, random: () => 1 }
  expect([1, 2, 3, 4, 5, 1_000].map((failed) => fullJitterMs(failed, longest))).toEqual([
    100, 200, 400, 800, 1_000, 1_000,
  ])
  expect(fullJitterMs(3, { baseMs: 100, maxMs: 1_000, random: () => 0.25 })).toBe(100)
  expect(fullJitterMs(3, { baseMs: 100, maxMs: 1_000, random: () => 0 })).toBe(0)
})

// Publishes were refused although the broker had been back for seconds: nodes waited up to 5 s for their next attempt. The
// pause after an outage grew with the outage, up to the time that publishes wait.
it('reaches a broker that is back well within the time that publishes wait for it', () => {
  const { brokerTimeoutMs } = resolveOptions({})
  expect(fullJitterMs(1_000, { ...BROKER_BACKOFF, random: () => 1 })).toBeLessThanOrEqual(brokerTimeoutMs / 5)
})
