import './virtual-time.js'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { playSeed } from './play.js'

vi.mock('ws', async () => ({ WebSocket: (await import('./network.js')).VirtualSocket }))
vi.mock('../../packages/check/src/playing/link.js', () => import('./virtual-link.js'))

const SCHEDULE_COUNT = 10
const MAX_SHOWN = 3

const runs = process.env.WEBMQ_TEST_RUNS
const firstSeed = Number(
  process.env.WEBMQ_TEST_SEED ?? (runs === undefined ? 1 : Math.floor(Math.random() * 1_000_000)),
)
const scheduleCount = runs === undefined ? SCHEDULE_COUNT : Number(runs)

/**
 * Keys that are not logged come by the queues of the nodes alone. Clients move more, so that nodes bind and unbind while
 * their queues hold messages, on a broker that is quick with one thing and slow with another.
 */
describe.each([[[]], [['a.#']]])('seeded schedules on rabbitmq with %j logged', (logged) => {
  // The first run loads modules, which takes real time.
  beforeAll(async () => {
    await playSeed(firstSeed, 'rabbitmq', logged)
  })

  it('keep the promises while clients move, and nodes, links and the broker fail', async () => {
    const failures: string[] = []
    let messageCount = 0
    const beganAtMs = performance.now()
    for (let seed = firstSeed; seed < firstSeed + scheduleCount; seed++) {
      const { violations, record } = await playSeed(seed, 'rabbitmq', logged)
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
    console.log(`${scheduleCount} schedules from seed ${firstSeed} on, ${messageCount} messages, ${perHour} per hour`)
    expect(messageCount).toBeGreaterThan(scheduleCount)
    expect(failures).toEqual([])
  })
})
