import './virtual-time.js'
import { describe, expect, it, vi } from 'vitest'
import { inTurn } from '../in-turn.js'
import type { SeededBrokerName } from './brokers.js'
import { playSeed } from './play.js'
import { SEEDED_THEMES, type SeededThemeName } from './themes.js'

vi.mock('ws', async () => ({ WebSocket: (await import('./network.js')).VirtualSocket }))
vi.mock('../../packages/check/src/playing/link.js', () => import('./virtual-link.js'))

const SCHEDULE_COUNT = 3
const MAX_SHOWN = 3
const BROKERS: readonly SeededBrokerName[] = ['redis', 'nats', 'rabbitmq']
/** All but what `seeded.test.ts` plays. */
const THEMES = Object.keys(SEEDED_THEMES).filter((theme) => theme !== 'anything') as SeededThemeName[]
/**
 * Have shown: a node waits for half a minute for a link that is lost while it is opened; what a lost link has sent is not sent
 * again when the next one begins while the broker takes no messages. Those of other rules show second copies that come late.
 */
const PINNED_SEEDS: Readonly<Record<string, readonly number[]>> = {
  'redis, unlogged': [1_030_150],
  'rabbitmq, unlogged': [1_030_618],
  'nats, other rules': [2_178],
  'rabbitmq, other rules': [2_019],
}

const runs = process.env.WEBMQ_TEST_RUNS
const firstSeed = Number(
  process.env.WEBMQ_TEST_SEED ?? (runs === undefined ? 1 : Math.floor(Math.random() * 1_000_000)),
)
const scheduleCount = runs === undefined ? SCHEDULE_COUNT : Number(runs)

describe.each(runs === undefined ? inTurn(BROKERS) : BROKERS)('seeded schedules on %s keep the promises', (broker) => {
  it.each(THEMES)('%s', async (theme) => {
    const failures: string[] = []
    let messageCount = 0
    // The first run of a process loads modules, which takes real time.
    await playSeed(firstSeed, broker, theme)
    const beganAtMs = performance.now()
    const seeds = Array.from({ length: scheduleCount }, (_, index) => firstSeed + index)
    for (const seed of [...(PINNED_SEEDS[`${broker}, ${theme}`] ?? []), ...seeds]) {
      const { violations, record } = await playSeed(seed, broker, theme)
      for (const { messages } of record.publishers) messageCount += messages.length
      if (violations.length === 0) continue
      const faults = record.faults.map(({ name, fromMs }) => `${Math.round(fromMs)} ms ${name}`).join(', ')
      const shown = violations
        .slice(0, MAX_SHOWN)
        .map(({ rule, atMs, text }) => `${Math.round(atMs)} ms ${rule}: ${text}`)
      failures.push([`seed ${seed}: ${faults}`, ...shown].join('\n  '))
      if (runs !== undefined) console.log(failures.at(-1))
    }
    const perHour = Math.round((3_600_000 * scheduleCount) / (performance.now() - beganAtMs))
    console.log(
      `${broker}, ${theme}: ${scheduleCount} from seed ${firstSeed} on, ${messageCount} messages, ${perHour} per hour`,
    )
    expect(messageCount).toBeGreaterThan(scheduleCount)
    expect(failures).toEqual([])
  })
})
