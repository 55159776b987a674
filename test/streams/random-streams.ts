import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { WebMQError } from 'webmq-client'
import type { StreamReader } from 'webmq-client/stream'
import { seededRandom } from '../../packages/client/test/seeded-random.js'
import type { BrokerRow } from '../history/brokers.js'
import { runCount } from '../history/run-count.js'
import type { TestSystem } from '../history/system.js'
import { Reading, Writing } from './participants.js'

const LEASE_MS = 1_000
const USUAL_RUNS = 24
const STEPS = 120
const STALL_MS = 20
/** Within which all is as before; a busy machine runs many tests at once. */
const SETTLE_TIMEOUT_MS = 120_000
const READER_COUNT = 6
const MAX_STOPS = 6

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
        const run = new Run(system, row.isLogShared, seededRandom(seed), `streams${process.pid}.${seed}`)
        try {
          await run.execute()
        } finally {
          await run.stop()
          await system.stop()
        }
      },
      SETTLE_TIMEOUT_MS * 3,
    )
  })
}

class Run {
  readonly #system: TestSystem
  readonly #mayEndNodes: boolean
  readonly #random: () => number
  readonly #keys: readonly string[]
  readonly #writings: Writing[] = []
  readonly #readings: Reading[] = []

  constructor(system: TestSystem, mayEndNodes: boolean, random: () => number, prefix: string) {
    this.#system = system
    this.#mayEndNodes = mayEndNodes
    this.#random = random
    this.#keys = [`${prefix}.one`, `${prefix}.two`]
  }

  async execute(): Promise<void> {
    for (const key of this.#keys) {
      const writing = await Writing.start(key, this.#anyNode)
      this.#writings.push(writing)
      await writing.open()
    }
    for (let step = 0; step < STEPS; step++) {
      for (const writing of this.#writings) if (this.#random() < 0.7) writing.append(this.#random)
      await this.#step()
      await sleep(this.#random() * 10)
    }
    await this.#add()
    const [stopped, killed] = this.#random() < 0.5 ? this.#writings : this.#writings.toReversed()
    if (stopped) await this.#stopAll(stopped)
    if (killed && this.#random() < 0.5) await killed.kill()
    await Promise.all(this.#writings.filter(({ error }) => error === undefined).map((writing) => writing.end()))
    for (const key of this.#keys) this.#readings.push(await Reading.start(key, this.#anyNode))
    const isOver = () => expect(this.#readings.filter((reading) => !reading.isOver).map(({ key }) => key)).toEqual([])
    await vi.waitFor(isOver, { timeout: SETTLE_TIMEOUT_MS, interval: 20 })
    for (const writing of this.#writings) this.#examine(writing)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#writings, ...this.#readings].map((participant) => participant.stop()))
  }

  #examine(writing: Writing): void {
    const { key, text, acknowledgedLength, isEnded, stopCount, error } = writing
    const statuses = new Set<string>()
    for (const { reader, shown } of this.#readings.filter((reading) => reading.key === key)) {
      const content = String(reader.content)
      statuses.add(reader.status)
      expect(reader.isCut, key).toBe(false)
      expect(text.startsWith(content), `${key}: a beginning of what was written`).toBe(true)
      expect(content.length, `${key}: what was acknowledged`).toBeGreaterThanOrEqual(acknowledgedLength)
      expect(shown, `${key}: what a page shows`).toBe(content)
      expect(reader.meta).toEqual({ key })
      if (isEnded) {
        expect(content).toBe(text)
        expect(reader.result).toEqual(stopCount > 0 ? undefined : { length: text.length })
      }
    }
    expect(statuses, `${key}, ${error}`).toEqual(new Set([isEnded ? (stopCount > 0 ? 'stop' : 'end') : 'lost']))
    expect(stopCount).toBeLessThanOrEqual(1)
  }

  /** Everybody stops one stream: its writer learns of it once. */
  async #stopAll(writing: Writing): Promise<void> {
    if (writing.error !== undefined) return
    const readers = this.#readings.filter(({ key }) => key === writing.key).map(({ reader }) => reader)
    // `stop` gives up after 10 s. A busy machine may need longer to find what is lost.
    const stop = async (reader: StreamReader) => {
      for (let count = 0; count < MAX_STOPS; count++) {
        const error = await reader.stop().then(
          () => undefined,
          (error: unknown) => error,
        )
        if (error === undefined || writing.error !== undefined) return
        if ((error as WebMQError).code !== 'E_TIMEOUT') throw error
      }
    }
    await Promise.all(readers.map(stop))
    if (writing.error === undefined && readers.length > 0) expect(writing.stopCount).toBe(1)
  }

  async #step(): Promise<void> {
    const chance = this.#random()
    const reading = this.#pick(this.#readings)
    if (chance < 0.1 && this.#readings.length < READER_COUNT) await this.#add()
    else if (chance < 0.2) reading?.inflict('cut')
    else if (chance < 0.25) await reading?.reload()
    else if (chance < 0.28) reading?.inflict('swallow')
    else if (chance < 0.31) {
      reading?.inflict('stall')
      await sleep(STALL_MS)
      reading?.resume()
    } else if (chance < 0.36) this.#pick(this.#writings)?.inflict(this.#random() < 0.7 ? 'cut' : 'swallow')
    else if (chance < 0.38 && this.#mayEndNodes) {
      const node = this.#pick(this.#system.nodes)
      await (node?.crash && this.#random() < 0.5 ? node.crash() : node?.stop())
      await node?.start()
    }
  }

  async #add(): Promise<void> {
    this.#readings.push(await Reading.start(this.#pick(this.#keys) ?? '', this.#anyNode))
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#random() * items.length)]
  }

  /** A node that is there, another one with each connection. */
  readonly #anyNode = (): number | undefined =>
    this.#pick(this.#system.nodes.map(({ port }) => port).filter((port) => port !== undefined))
}
