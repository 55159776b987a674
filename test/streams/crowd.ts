import { setTimeout as sleep } from 'node:timers/promises'
import { it } from 'vitest'
import { seededRandom } from '../../packages/client/test/seeded-random.js'
import type { BrokerRow } from '../history/brokers.js'
import type { TestNode } from '../history/node.js'
import { SETTLE_TIMEOUT_MS, StreamRun } from './stream-run.js'

/** `npm run test:all` has 1,000; `npm test` has enough for each fault to hit several. */
const READER_COUNT = Number(process.env.WEBMQ_TEST_READERS ?? 60)
const STREAM_COUNT = 4
const LEAST_STEPS = 150
const STEP_MS = 50
/** Of the readers, how many come with each step, and how many something happens to. */
const COMING_SHARE = 1 / 100
const FAULT_SHARE = 1 / 200
const MAX_FREEZE_MS = 1_500
const PAUSE_MS = 1_000
/** The writers outlive the broker: RabbitMQ takes seconds to start. */
const LEASE_MS = { rabbitmq: 20_000 }
const USUAL_LEASE_MS = 6_000
const PATIENCE = { heartbeatTimeoutMs: 3_000, connectTimeoutMs: 10_000 }
const NODE_OPTIONS = { pingIntervalMs: 3_000, pingTimeoutMs: 10_000 }

/**
 * Many readers come, reload, move, freeze and are cut off while nodes, the broker and a writer are killed and one stream is stopped
 * by all of them at once. In the end every reader has what the writer was told to be in the log.
 */
export function crowdOfReaders(row: BrokerRow): void {
  it(
    `streams with many readers have one text each, whatever is killed: ${READER_COUNT} over ${row.name}`,
    async () => {
      const options = {
        ...NODE_OPTIONS,
        streamLeaseMs: (LEASE_MS as Record<string, number>)[row.name] ?? USUAL_LEASE_MS,
      }
      const system = await (row.startFaulty?.('processes', options) ?? row.start('in-process', options))
      const prefix = `crowd${process.pid}`
      const keys = Array.from({ length: STREAM_COUNT }, (_, index) => `${prefix}.${index}`)
      const run = new StreamRun(system, seededRandom(READER_COUNT), keys, PATIENCE)
      try {
        await new Crowd(run, row.isLogShared).play()
      } finally {
        await run.stop()
        await system.stop()
      }
    },
    SETTLE_TIMEOUT_MS * 4,
  )
}

class Crowd {
  readonly #run: StreamRun
  readonly #mayEndNodes: boolean
  /** What is still going on. */
  readonly #pending = new Set<Promise<unknown>>()

  constructor(run: StreamRun, mayEndNodes: boolean) {
    this.#run = run
    this.#mayEndNodes = mayEndNodes
  }

  async play(): Promise<void> {
    const { writings, random, readings } = this.#run
    await this.#run.open()
    let isTrouble = true
    const trouble = this.#trouble().finally(() => {
      isTrouble = false
    })
    // A failure is told at the end.
    trouble.catch(() => undefined)
    for (let count = 0; count < LEAST_STEPS || isTrouble; count++) {
      for (const writing of writings) if (writing.error === undefined && random() < 0.2) writing.append(random)
      const coming = Math.min(READER_COUNT - readings.length, Math.ceil(READER_COUNT * COMING_SHARE))
      await Promise.all(Array.from({ length: coming }, () => this.#run.add()))
      for (let faults = Math.ceil(READER_COUNT * FAULT_SHARE); faults > 0; faults--) this.#fault()
      await sleep(STEP_MS)
    }
    await trouble
    await Promise.all(this.#pending)
    await this.#run.finish()
  }

  /** One after the other: a reader that is hit by one of them comes back before the next. */
  async #trouble(): Promise<void> {
    const { system, writings } = this.#run
    const [stopped, killed] = writings
    const [first, second] = this.#mayEndNodes ? system.nodes : []
    await sleep(2 * PAUSE_MS)
    await this.#end(first, 'crash')
    const stops: Promise<void>[] = []
    for (const { name, inject, end, holdMs } of system.faults) {
      if (!/^(killed|all)/.test(name)) continue
      await inject()
      if (stopped && stops.length === 0) stops.push(this.#run.stopAll(stopped))
      await sleep(holdMs)
      await end()
      await sleep(PAUSE_MS)
    }
    if (stopped && stops.length === 0) stops.push(this.#run.stopAll(stopped))
    await this.#end(second, 'stop')
    await killed?.kill()
    await this.#end(second, 'crash')
    await Promise.all(stops)
  }

  async #end(node: TestNode | undefined, how: 'crash' | 'stop'): Promise<void> {
    await node?.[how]?.()
    await node?.start()
    await sleep(PAUSE_MS)
  }

  #fault(): void {
    const { readings, writings, random } = this.#run
    const [chance, reading] = [random(), this.#run.pick(readings)]
    if (chance < 0.3) reading?.inflict('cut')
    else if (chance < 0.6) this.#later(reading?.reload())
    else if (chance < 0.7) reading?.inflict('swallow')
    else if (chance < 0.95) {
      reading?.inflict('stall')
      this.#later(sleep(random() * MAX_FREEZE_MS).then(() => reading?.resume()))
    } else this.#run.pick(writings)?.inflict(random() < 0.7 ? 'cut' : 'swallow')
  }

  #later(going: Promise<unknown> | undefined): void {
    const all = Promise.resolve(going).finally(() => this.#pending.delete(all))
    this.#pending.add(all)
  }
}
