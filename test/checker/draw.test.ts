import { describe, expect, it } from 'vitest'
import { matches } from '../../packages/check/src/judging/keys.js'
import { draw } from '../../packages/check/src/playing/draw.js'
import {
  ACTORS_PER_STREAM,
  type BrokerName,
  type Logged,
  type Schedule,
} from '../../packages/check/src/playing/schedule.js'
import { scoped, scopeOf } from '../../packages/check/src/visiting/scope.js'
import { themesOfVisit } from '../../packages/check/src/visiting/themes.js'
import { drawSchedule, themesFor } from './broker-schedules.js'
import { BROKERS } from './brokers.js'

const LENGTHS_MS = [5_000, 20_000]
const SEEDS = Array.from({ length: 60 }, (_, index) => index)

function expectPlayable(schedule: Schedule, nodeCount: number): void {
  const { steps, lengthMs, listeners, publishers, streamCount = 0 } = schedule

  for (const step of steps) {
    expect(step.atMs).toBeGreaterThanOrEqual(0)
    expect(step.atMs + step.forMs).toBeLessThanOrEqual(lengthMs)
    if ('node' in step) expect(step.node).toBeLessThan(nodeCount)
    if ('actor' in step) {
      const own = step.what.includes('publisher') ? publishers.length : listeners.length
      const isOfStreams = /writer|viewer|stream/.test(step.what)
      expect(step.actor).toBeLessThan(isOfStreams ? ACTORS_PER_STREAM * streamCount : own)
    }
  }
}

describe.each(Object.keys(BROKERS) as BrokerName[])('schedules of %s', (broker) => {
  const { nodeCount } = BROKERS[broker]

  it('are the same for the same seed', () => {
    for (const seed of SEEDS) expect(drawSchedule(broker, seed, 20_000)).toEqual(drawSchedule(broker, seed, 20_000))
    expect(drawSchedule(broker, 1, 20_000)).not.toEqual(drawSchedule(broker, 1 + themesFor(broker).length, 20_000))
  })

  it('have every theme that fits, on neighbouring seeds', () => {
    const themes = themesFor(broker).map(({ name }) => name)
    const drawn = themes.map((_, seed) => drawSchedule(broker, seed, 20_000).theme)
    expect(drawn.sort()).toEqual(themes.sort())
  })

  it.each(LENGTHS_MS)('of %d ms are over in time, and name only what there is', (lengthMs) => {
    for (const seed of SEEDS) expectPlayable(drawSchedule(broker, seed, lengthMs), nodeCount)
  })
})

const drawVisit = (logged: Logged, seed: number, commandCount = 0) =>
  draw(
    {
      ...{ broker: 'given', nodeCount: 2, partCount: 0, hasBrokerLinks: false, logged },
      themes: themesOfVisit(logged !== 'none', commandCount),
    },
    seed,
    10_000,
  )

describe('schedules of an installation that is running already', () => {
  it('are what clients do, and their links', () => {
    for (const logged of ['all', 'half', 'none'] as const) {
      for (const seed of SEEDS) {
        const schedule = drawVisit(logged, seed)
        expect(schedule.logged).toBe(logged)
        expect(schedule.steps.every((step) => 'actor' in step || step.what === 'client-link')).toBe(true)
        expectPlayable(schedule, 2)
      }
    }
  })

  it('have a command of the operator every other time, each in turn', () => {
    const commands = SEEDS.slice(0, 24).map((seed) =>
      drawVisit('all', seed, 2).steps.flatMap((step) => (step.what === 'run-command' ? [step.command] : [])),
    )
    expect(commands.every((each, seed) => each.length === (seed % 2 === 0 ? 1 : 0))).toBe(true)
    expect(new Set(commands.flat())).toEqual(new Set([0, 1]))
  })

  it.each(['all', 'none', 'chat.#', 'a.b.#'])('use no keys of others when %s is logged', (logged) => {
    const scope = scopeOf(logged, 'word')
    for (const seed of SEEDS) {
      const { publishers, listeners, readers } = scoped(drawVisit('half', seed), scope)
      const keys = [...publishers, ...readers].flatMap((plan) => plan.keys)
      const patterns = listeners.flatMap(({ listens }) => listens.map(({ pattern }) => pattern))
      for (const name of [...keys, ...patterns]) expect(name.split('.')).toContain('word')
      if (logged === 'all' || logged === 'none') continue
      const reads = readers.flatMap((plan) => plan.keys)
      expect(reads.every((key) => matches(logged, key))).toBe(true)
    }
  })

  it('have rules of plain words and # only', () => {
    expect(() => scopeOf('*.x', 'word')).toThrow('--logged must be')
  })
})
