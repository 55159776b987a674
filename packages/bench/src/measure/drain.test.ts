import { describe, expect, it } from 'vitest'
import { drain } from './drain.js'

/** Runs a drain over virtual time; messages arrive at the given times. */
async function drainOver(arrivalsMs: readonly number[], limitMs: number) {
  let nowMs = 0
  const result = await drain({
    arrivedCount: () => arrivalsMs.filter((arrivalMs) => arrivalMs <= nowMs).length,
    quietMs: 3_000,
    limitMs,
    pollMs: 100,
    now: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms
    },
  })
  return { ...result, endedMs: nowMs }
}

describe('the drain', () => {
  it('ends when nothing has arrived for three seconds', async () => {
    expect(await drainOver([], 30_000)).toEqual({ hasTimedOut: false, endedMs: 3_000 })
    expect(await drainOver([1_000, 3_900], 30_000)).toEqual({ hasTimedOut: false, endedMs: 6_900 })
  })

  it('does not wait for what comes after a pause that long', async () => {
    expect(await drainOver([1_000, 4_100], 30_000)).toEqual({ hasTimedOut: false, endedMs: 4_000 })
  })

  it('is given up at the limit while messages still arrive', async () => {
    const endless = Array.from({ length: 100 }, (_, index) => index * 1_000)
    expect(await drainOver(endless, 30_000)).toEqual({ hasTimedOut: true, endedMs: 30_000 })
  })
})
