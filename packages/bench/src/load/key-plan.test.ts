import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KeyPlan, type KeyPlanOptions } from './key-plan.js'
import { publicationsOf, SendSchedule } from './send-schedule.js'

const OPTIONS: KeyPlanOptions = {
  clientCount: 20,
  listensPerClient: 4,
  keyPoolSize: 10,
  publishRatePerSecond: 5,
  durationUs: 2_000_000,
  warmupUs: 500_000,
  seed: 1,
}

const planOptions = fc.record({
  clientCount: fc.integer({ min: 1, max: 30 }),
  listensPerClient: fc.integer({ min: 1, max: 12 }),
  keyPoolSize: fc.integer({ min: 1, max: 20 }),
  publishRatePerSecond: fc.constantFrom(0.5, 1, 3, 5, 7.5),
  durationUs: fc.integer({ min: 100_000, max: 3_000_000 }),
  warmupUs: fc.integer({ min: 0, max: 1_000_000 }),
  seed: fc.integer({ min: 0, max: 0xffff_ffff }),
})

describe('the plan', () => {
  it('counts the deliveries of every message as a search through all clients does', () => {
    fc.assert(
      fc.property(planOptions, (options) => {
        const plan = new KeyPlan(options)
        for (const { key } of publicationsOf(plan)) {
          let listenerCount = 0
          for (let client = 0; client < options.clientCount; client++) {
            for (const listened of plan.listensOf(client)) if (listened === key) listenerCount++
          }
          expect(plan.listenerCount(key)).toBe(listenerCount)
        }
      }),
      { numRuns: 50 },
    )
  })

  it('lets every client listen to distinct keys of the pool, as many as asked for or all of them', () => {
    fc.assert(
      fc.property(planOptions, (options) => {
        const plan = new KeyPlan(options)
        for (let client = 0; client < options.clientCount; client++) {
          const keys = plan.listensOf(client)
          expect(new Set(keys).size).toBe(Math.min(options.listensPerClient, options.keyPoolSize))
          expect(keys.every((key) => Number.isInteger(key) && key >= 0 && key < options.keyPoolSize)).toBe(true)
        }
      }),
    )
  })

  it('is the same for the same seed and another for another', () => {
    expect(publicationsOf(new KeyPlan(OPTIONS))).toEqual(publicationsOf(new KeyPlan(OPTIONS)))
    expect(publicationsOf(new KeyPlan(OPTIONS))).not.toEqual(publicationsOf(new KeyPlan({ ...OPTIONS, seed: 2 })))
  })

  it('sends the same messages in the window whatever the warm-up', () => {
    const counted = (warmupUs: number) =>
      publicationsOf(new KeyPlan({ ...OPTIONS, warmupUs })).filter(({ turn }) => turn >= 0)
    expect(counted(0)).toEqual(counted(1_300_000))
    expect(counted(0)).toHaveLength(20 * 5 * 2)
  })

  it('numbers the messages of one client to one key from 0 without a hole', () => {
    const next = new Map<string, number>()
    for (const { client, turn, key, keySequence } of publicationsOf(new KeyPlan(OPTIONS))) {
      if (turn < 0) continue
      const pair = `${client} ${key}`
      expect(keySequence).toBe(next.get(pair) ?? 0)
      next.set(pair, keySequence + 1)
    }
    expect(next.size).toBeGreaterThan(20)
  })

  it('uses every key of the pool and no other', () => {
    const keys = new Set(publicationsOf(new KeyPlan(OPTIONS)).map(({ key }) => key))
    expect([...keys].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })
})

describe('the send schedule', () => {
  it('is in order of time, within warm-up and window, and gives every client its rate', () => {
    fc.assert(
      fc.property(planOptions, (options) => {
        const drawn = publicationsOf(new KeyPlan(options))
        const periodUs = 1_000_000 / options.publishRatePerSecond
        const lastAtUs = new Map<number, number>()
        let previousUs = Number.NEGATIVE_INFINITY
        for (const { client, turn, atUs } of drawn) {
          expect(atUs).toBeGreaterThanOrEqual(previousUs)
          expect(atUs).toBeGreaterThanOrEqual(-options.warmupUs)
          expect(atUs).toBeLessThan(options.durationUs)
          expect(turn < 0).toBe(atUs < 0)
          const beforeUs = lastAtUs.get(client)
          if (beforeUs !== undefined) expect(atUs - beforeUs).toBeCloseTo(periodUs, 3)
          lastAtUs.set(client, atUs)
          previousUs = atUs
        }
        const totalUs = options.durationUs + options.warmupUs
        for (let client = 0; client < options.clientCount; client++) {
          const count = drawn.filter((publication) => publication.client === client).length
          expect(Math.abs(count - totalUs / periodUs)).toBeLessThanOrEqual(1)
        }
      }),
      { numRuns: 50 },
    )
  })

  it('spreads the clients over the period instead of letting all send at once', () => {
    const plan = new KeyPlan({ ...OPTIONS, clientCount: 400 })
    const tenths = new Array<number>(10).fill(0)
    for (let client = 0; client < 400; client++) {
      const tenth = Math.floor((plan.phaseUs(client) / plan.periodUs) * 10)
      tenths[tenth] = (tenths[tenth] ?? 0) + 1
    }
    // 40 each on average; a share of 20 to 60 is within three standard deviations.
    for (const count of tenths) {
      expect(count).toBeGreaterThan(20)
      expect(count).toBeLessThan(60)
    }
  })

  it('splits into the schedules of several workers without losing or doubling a send', () => {
    const plan = new KeyPlan(OPTIONS)
    const drain = (schedule: SendSchedule) => {
      const sends: string[] = []
      for (let send = schedule.shift(); send !== undefined; send = schedule.shift())
        sends.push(`${send.client} ${send.turn}`)
      return sends
    }
    const clients = Array.from({ length: 20 }, (_, client) => client)
    const together = drain(new SendSchedule(plan, clients))
    const split = [
      ...drain(new SendSchedule(plan, clients.slice(0, 7))),
      ...drain(new SendSchedule(plan, clients.slice(7))),
    ]
    expect(split.sort()).toEqual(together.sort())
  })
})
