import './virtual-time.js'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { quintTestOf } from '../model/quint.js'
import { moduleOf } from '../model/trace.js'
import { SEEDED_BROKERS, type SeededBrokerName } from './brokers.js'
import { playSeed } from './play.js'

vi.mock('ws', async () => ({ WebSocket: (await import('./network.js')).VirtualSocket }))
vi.mock('../../packages/check/src/playing/link.js', () => import('./virtual-link.js'))

const SCHEDULE_COUNT = 20
const SOAK_SCHEDULE_COUNT = 5_000
const MAX_SHOWN = 3
/** Its log loses its end, and begins other epochs. */
const TRACED_SEED = 4
/** Events that take the evaluator a second. */
const TRACED_EVENTS = 32
/**
 * Have shown: a message that was sent again into another log is left out without a gap; a link that dies while it is opened;
 * a message that was dropped is sent again behind later ones; a node says that a log is whole which it does not know.
 */
const PINNED_SEEDS: Partial<Record<SeededBrokerName, readonly number[]>> = {
  model: [480],
  redis: [1_050_331],
  nats: [1_050_004],
  rabbitmq: [1_020_232],
}

const isSoak = process.env.WEBMQ_TEST_RUNS !== undefined
const firstSeed = Number(process.env.WEBMQ_TEST_SEED ?? (isSoak ? 1 + Math.floor(Math.random() * 1_000_000) : 1))
const scheduleCount = isSoak ? Number(process.env.WEBMQ_TEST_RUNS) || SOAK_SCHEDULE_COUNT : SCHEDULE_COUNT

describe.each(Object.keys(SEEDED_BROKERS) as SeededBrokerName[])('seeded schedules on %s', (broker) => {
  // The first run loads modules, which takes real time.
  beforeAll(async () => {
    await playSeed(firstSeed, broker)
  })

  it('gives the same bytes for the same seed', async () => {
    const [one, same, other] = [
      await playSeed(firstSeed, broker),
      await playSeed(firstSeed, broker),
      await playSeed(firstSeed + 1, broker),
    ]
    expect(one.transcript.count).toBeGreaterThan(200)
    expect(same.transcript).toEqual(one.transcript)
    expect(other.transcript.digest).not.toBe(one.transcript.digest)
  })

  it('keeps its promises while nodes, links and the broker fail, and the log loses its end', async () => {
    const seeds = Array.from({ length: scheduleCount }, (_, index) => firstSeed + index)
    const failures: string[] = []
    let [callCount, messageCount] = [0, 0]
    const beganAtMs = performance.now()
    for (const seed of [...(PINNED_SEEDS[broker] ?? []), ...seeds]) {
      const { violations, record, ...run } = await playSeed(seed, broker)
      callCount += run.callCount
      for (const { messages } of record.publishers) messageCount += messages.length
      const faults = record.faults.map(({ name, fromMs }) => `${Math.round(fromMs)} ms ${name}`).join(', ')
      const shown = violations
        .slice(0, MAX_SHOWN)
        .map(({ rule, atMs, text }) => `\n  ${Math.round(atMs)} ms ${rule}: ${text}`)
      if (violations.length > 0) failures.push(`seed ${seed}: ${faults}${shown.join('')}`)
      if (violations.length > 0 && isSoak) console.log(failures.at(-1))
    }
    const seconds = (performance.now() - beganAtMs) / 1_000
    console.log(
      `${broker}: ${scheduleCount} schedules from seed ${firstSeed} on, ${messageCount} messages, ${callCount} timers,`,
      `${Math.round((3_600 * scheduleCount) / seconds)} schedules per hour`,
    )
    expect(failures).toEqual([])
  })
})

it('shows clients what the model of positions allows, and the model finds a lost message', async () => {
  const { record } = await playSeed(TRACED_SEED, 'model')
  const whole = record.listeners.filter(({ isOfClient }) => isOfClient !== true).at(-1)
  const listener = whole && { ...whole, events: whole.events.slice(0, TRACED_EVENTS) }
  const live = listener?.events.flatMap(({ what }, at) => (what === 'message' ? [at] : [])) ?? []
  const lost = live[Math.floor(live.length / 4)]
  if (listener === undefined || lost === undefined) throw new Error('nobody has got anything')
  const lossy = { ...listener, events: listener.events.filter((_, at) => at !== lost) }
  const result = await quintTestOf(moduleOf(record, [listener, lossy]))
  expect(result).toEqual({ passed: ['holds0'], failed: ['holds1'] })
})
