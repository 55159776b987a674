import { setTimeout as sleep } from 'node:timers/promises'
import { describe, it } from 'vitest'
import { seededRandom } from '../../packages/client/test/seeded-random.js'
import type { BrokerRow } from '../history/brokers.js'
import { runCount } from '../history/run-count.js'
import { SETTLE_TIMEOUT_MS, StreamRun } from './stream-run.js'

const LEASE_MS = 1_000
const USUAL_RUNS = 24
const STEPS = 120
const STALL_MS = 20
const READER_COUNT = 6
/** Half-open connections are found after the first and the node's interval. */
const PATIENCE = { heartbeatTimeoutMs: 200, connectTimeoutMs: 1_000 }

/**
 * Streams are written and read while connections are cut, half-open or stalled, readers reload, move and come late, and nodes and
 * writers end. In the end every reader has what the writer was told to be in the log.
 */
export function randomStreams(row: BrokerRow): void {
  describe(`streams over ${row.name}`, () => {
    it.each(Array.from({ length: runCount(USUAL_RUNS, 0.1) }, (_, seed) => seed + 1))(
      'have one text for all readers, whatever fails: seed %i',
      async (seed) => {
        const system = await row.start(seed % 4 === 0 && row.isLogShared ? 'processes' : 'in-process', {
          streamLeaseMs: LEASE_MS,
        })
        const prefix = `streams${process.pid}.${seed}`
        const run = new StreamRun(system, seededRandom(seed), [`${prefix}.one`, `${prefix}.two`], PATIENCE)
        try {
          await play(run, row.isLogShared)
        } finally {
          await run.stop()
          await system.stop()
        }
      },
      SETTLE_TIMEOUT_MS * 3,
    )
  })
}

async function play(run: StreamRun, mayEndNodes: boolean): Promise<void> {
  const { writings, random } = run
  await run.open()
  for (let count = 0; count < STEPS; count++) {
    for (const writing of writings) if (random() < 0.7) writing.append(random)
    await step(run, mayEndNodes)
    await sleep(random() * 10)
  }
  await run.add()
  const [stopped, killed] = random() < 0.5 ? writings : writings.toReversed()
  if (stopped) await run.stopAll(stopped)
  if (killed && random() < 0.5) await killed.kill()
  await run.finish()
}

async function step(run: StreamRun, mayEndNodes: boolean): Promise<void> {
  const { readings, writings, system, random } = run
  const chance = random()
  const reading = run.pick(readings)
  if (chance < 0.1 && readings.length < READER_COUNT) await run.add()
  else if (chance < 0.2) reading?.inflict('cut')
  else if (chance < 0.25) await reading?.reload()
  else if (chance < 0.28) reading?.inflict('swallow')
  else if (chance < 0.31) {
    reading?.inflict('stall')
    await sleep(STALL_MS)
    reading?.resume()
  } else if (chance < 0.36) run.pick(writings)?.inflict(random() < 0.7 ? 'cut' : 'swallow')
  else if (chance < 0.38 && mayEndNodes) {
    const node = run.pick(system.nodes)
    await (node?.crash && random() < 0.5 ? node.crash() : node?.stop())
    await node?.start()
  }
}
