import { expect, it } from 'vitest'
import { KeyPlan } from './key-plan.js'
import { publicationsOf } from './send-schedule.js'
import { writePlan } from './written-plan.js'

const OPTIONS = {
  clientCount: 4,
  listensPerClient: 3,
  keyPoolSize: 5,
  publishRatePerSecond: 7.5,
  durationUs: 1_100_000,
  warmupUs: 500_000,
  seed: 1,
}

it('a written plan has the listens and messages of the plan, with whole microseconds', () => {
  const plan = new KeyPlan(OPTIONS)
  const { listens, sends, padding } = writePlan(OPTIONS, 120)
  expect(listens).toEqual([0, 1, 2, 3].map((client) => plan.listensOf(client)))
  const publications = publicationsOf(plan)
  expect(sends).toHaveLength(publications.length)
  for (const [place, [client, turn, key, keySequence, atUs]] of sends.entries()) {
    expect(publications[place]).toMatchObject({ client, turn, key, keySequence })
    expect(Math.abs(atUs - (publications[place]?.atUs ?? 0))).toBeLessThanOrEqual(0.5)
    expect(Number.isInteger(atUs)).toBe(true)
  }
  expect(padding).toHaveLength(120)
})
