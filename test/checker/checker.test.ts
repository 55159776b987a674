import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Company } from '../../packages/check/src/actors/company.js'
import type { BrokerName } from '../../packages/check/src/playing/schedule.js'
import { lineOf, violationsOf } from '../../packages/check/src/report/report.js'
import { findGo } from '../clients/go.js'
import { findPython } from '../clients/python.js'
import { ROOT } from '../deploy/files.js'
import { drawSchedule } from './broker-schedules.js'
import { type Program, Troupe } from './clients/troupe.js'
import { pinnedFor } from './pinned.js'
import { playSeries } from './series.js'

const BROKERS: readonly BrokerName[] = ['memory', 'redis', 'redis-cluster', 'nats', 'rabbitmq', 'mesh']
/** Of `npm test`: a schedule per broker. `npm run test:soak` plays a quarter of an hour of them. */
const LENGTH_MS = 5_000
const COUNT = 1
const SOAK_LENGTH_MS = 15_000
const SOAK_COUNT = 10
/** Start, recovery, the last deliveries, and a machine that does other things. */
const MAX_PLAY_MS = 90_000
const PARALLEL_COUNT = 2

const isSoak = process.env.WEBMQ_TEST_RUNS !== undefined
const [count, lengthMs] = isSoak ? [SOAK_COUNT, SOAK_LENGTH_MS] : [COUNT, LENGTH_MS]
const firstSeed = Number(process.env.WEBMQ_TEST_SEED ?? 1 + Math.floor(Math.random() * 100_000))
const timeout = MAX_PLAY_MS * count

describe.each(BROKERS)('%s, seen from outside', (broker) => {
  it('keeps its promises while everything goes wrong', { timeout }, async () => {
    const schedules = Array.from({ length: count }, (_, index) => drawSchedule(broker, firstSeed + index, lengthMs))
    expect(await failuresOf(broker, schedules)).toEqual([])
  })

  // Each of these takes longer than all that `npm test` plays.
  if (!isSoak) return
  it('does not show again what it has shown once', { timeout }, async () => {
    expect(await failuresOf(broker, pinnedFor(broker))).toEqual([])
  })
})

const [python, go] = [await findPython(), await findGo()]
const clients: [string, Program][] = []
if (python.program) {
  clients.push(['Python', { command: [python.program, `${ROOT}clients/python/tests/adapter.py`], env: python.env }])
}
if (go.adapter) clients.push(['Go', { command: [go.adapter] }])

describe.each(clients)('the client for %s, seen from outside', (name, program) => {
  let troupe: Troupe

  beforeAll(async () => {
    troupe = await Troupe.start(name, program)
  })
  afterAll(() => troupe.stop())

  it.each(BROKERS)('keeps its promises with %s', { timeout }, async (broker) => {
    const schedules = Array.from({ length: count }, (_, index) => drawSchedule(broker, firstSeed + index, lengthMs))
    expect(await failuresOf(broker, schedules, () => troupe.company())).toEqual([])
  })
})

async function failuresOf(
  broker: BrokerName,
  schedules: Parameters<typeof playSeries>[0]['schedules'],
  company?: () => Company,
) {
  const failures: string[] = []
  await playSeries({
    broker,
    schedules,
    parallelCount: PARALLEL_COUNT,
    ...(company && { company }),
    played: (played, tookMs) => {
      const line = lineOf(played, tookMs)
      console.log(line)
      if (played.violations.length === 0) return
      failures.push(`${line}\n${violationsOf(played)}\n${JSON.stringify(played.schedule)}`)
    },
  })
  return failures
}
