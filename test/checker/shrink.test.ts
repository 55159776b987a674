import { expect, it } from 'vitest'
import type { Schedule } from '../../packages/check/src/playing/schedule.js'
import { shrink, smallerThan } from '../../packages/check/src/playing/shrink.js'
import { drawSchedule } from './broker-schedules.js'

const LIMITS = { smallerThan, maxTries: 1_000, maxMs: 10_000 }
const schedule = drawSchedule('redis', 7, 20_000)
const sizeOf = ({ steps, listeners, publishers, readers, memberCount = 0, lengthMs }: Schedule) =>
  [steps, publishers, readers, listeners.flatMap(({ listens }) => listens)].reduce(
    (sum, { length }) => sum + length,
    memberCount + lengthMs / 1_000_000,
  )

it('leaves one step and one of each actor where nothing else is needed', async () => {
  const fails = async ({ steps, listeners }: Schedule) => steps.length > 0 && listeners.length > 0
  const { steps, publishers, listeners, readers } = await shrink(schedule, { ...LIMITS, fails })
  expect([steps.length, publishers.length, readers.length]).toEqual([1, 1, 0])
  expect(listeners.map(({ listens }) => listens.length)).toEqual([1])
})

it('keeps what the failure needs', async () => {
  const [, needed] = schedule.steps
  if (needed === undefined) throw new Error('the seed has two steps')
  const fails = async ({ steps }: Schedule) => steps.includes(needed)
  expect((await shrink(schedule, { ...LIMITS, fails })).steps).toEqual([needed])
})

it('gives up after three tries', async () => {
  let tries = 0
  const fails = async () => ++tries > 0
  await shrink(schedule, { ...LIMITS, fails, smallerThan, maxTries: 3 })
  expect(tries).toBe(3)
})

it('stays as it is when nothing smaller fails', async () => {
  expect(await shrink(schedule, { ...LIMITS, fails: async () => false })).toBe(schedule)
})

it('tries only what is smaller, with steps at actors that are there', () => {
  for (const smaller of smallerThan(schedule)) {
    expect(sizeOf(smaller)).toBeLessThan(sizeOf(schedule))
    for (const step of smaller.steps) {
      if (!('actor' in step)) continue
      const actors = step.what.includes('publisher') ? smaller.publishers : smaller.listeners
      expect(step.actor).toBeLessThan(actors.length)
    }
  }
})

it('moves the steps of the actors behind one that is left out', () => {
  const steps = [0, 1, 2].map((actor) => ({ atMs: actor, forMs: 0, what: 'cut-listener' as const, actor }))
  const [plan] = schedule.listeners
  if (plan === undefined) throw new Error('the seed has a listener')
  const of = { ...schedule, readers: [], listeners: [plan, plan, plan], steps }
  const without = [...smallerThan(of)].filter(({ listeners }) => listeners.length === 2)
  expect(without.map((each) => each.steps.map((step) => [step.atMs, 'actor' in step && step.actor]))).toEqual([
    [
      [1, 0],
      [2, 1],
    ],
    [
      [0, 0],
      [2, 1],
    ],
    [
      [0, 0],
      [1, 1],
    ],
  ])
})
