import { describe, expect, it } from 'vitest'
import { hostileCases } from './cases/index.js'
import { memoryBoundBytes } from './memory-bound.js'
import { shareOfAllowed } from './p99s.js'
import { type PlayedCase, type PlayLoad, playCase } from './play.js'

/** `npm run test:hostile` plays every case with the whole load; `npm test` two of them with a small one. */
const isWhole = process.env.WEBMQ_TEST_HOSTILE === 'all'
const WHOLE: PlayLoad = { connections: 1_000, hostile: 10, baselineMs: 3_000, attackMs: 5_000, isCompared: true }
const SMALL: PlayLoad = { connections: 60, hostile: 3, baselineMs: 1_000, attackMs: 1_000, isCompared: false }
const PLAY_TIMEOUT_MS = 180_000

const played = isWhole
  ? hostileCases
  : hostileCases.filter(({ name }) => ['malformed-messages', 'forged-tokens'].includes(name))

describe('hostile clients', { timeout: PLAY_TIMEOUT_MS }, () => {
  it.each(played)('$name: $does', async (hostileCase) => {
    const result = await playCase(hostileCase, isWhole ? WHOLE : SMALL)
    console.log(result.summary)
    expectUnharmed(result)
    if (hostileCase.name === 'malformed-messages') {
      expect(result.attacked.closes).toMatchObject({ 4500: expect.any(Number) })
      expect(result.attacked.errors).toMatchObject({ E_MESSAGE_INVALID: expect.any(Number) })
    }
    if (hostileCase.name === 'forged-tokens') {
      expect(result.attacked.closes).toMatchObject({ 4501: expect.any(Number) })
    }
    // Latencies beside other tests show the machine.
    if (!isWhole) return
    // Behind a broker that is too slow all messages wait.
    if (hostileCase.needs === 'slow-broker') expect(result.attacked.errors).toHaveProperty('E_RATE_LIMIT')
    else expect(result.latencyShare, result.summary).toBeLessThanOrEqual(1)
    expect(result.pingShare, result.summary).toBeLessThanOrEqual(1)
  })
})

function expectUnharmed(result: PlayedCase): void {
  expect(result).toMatchObject({ lostCount: 0, duplicateCount: 0, unansweredPingCount: 0, closes: {}, refusals: {} })
  expect(result).toMatchObject({ healthFailures: {}, death: undefined, attacked: { bugs: {} } })
  expect(
    Object.keys({ ...result.closes, ...result.refusals, ...result.healthFailures, ...result.attacked.bugs }),
  ).toEqual([])
  expect(result.memoryShare).toBeLessThanOrEqual(1)
}

describe('the catalogue of hostile clients', () => {
  it('has 90 cases, with names that can be typed, each once, and a short sentence', () => {
    const names = hostileCases.map(({ name }) => name)
    expect(new Set(names).size).toBe(90)
    expect(names).toHaveLength(90)
    for (const { name, does } of hostileCases) {
      expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/)
      expect(does).toMatch(/^[a-z].{10,110}[^.]$/)
    }
  })

  it.each([
    [25, 10, 1],
    [5, 0, 1],
    [50, 10, 2],
    [null, 10, Number.POSITIVE_INFINITY],
    [10, null, Number.POSITIVE_INFINITY],
  ])('allows twice the baseline and 5 ms: p99 %s beside %s takes %s of it', (p99, baseline, share) => {
    expect(shareOfAllowed(p99, baseline)).toBe(share)
  })

  it('lets memory grow by what the connections of the case may fill', () => {
    const quiet = { name: 'a', does: 'b', fills: [], attack: async () => undefined }
    const none = memoryBoundBytes(quiet, 0)
    const bare = memoryBoundBytes(quiet, 10) - none
    expect(memoryBoundBytes({ ...quiet, connections: 20 }, 10) - none).toBe(20 * bare)
    expect(memoryBoundBytes({ ...quiet, fills: ['outbox'] }, 10) - none - bare).toBe(10 * 1024 ** 2)
    expect(memoryBoundBytes({ ...quiet, fills: ['log'] }, 10) - none - bare).toBe(32 * 1024 ** 2)
  })
})
