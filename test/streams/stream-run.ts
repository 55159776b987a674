import { expect, vi } from 'vitest'
import type { WebMQError } from 'webmq-client'
import type { TestSystem } from '../history/system.js'
import { type Patience, Reading, Writing } from './participants.js'

/** Within which all is as before; a busy machine runs many tests at once. */
export const SETTLE_TIMEOUT_MS = 120_000
const MAX_STOPS = 12
/** A page that is gone, or a stop that gave up: it may be tried again. */
const PASSING = /^E_(TIMEOUT|NO_RESPONDERS|DISCONNECTED|RESPONSE|CLOSED|ABORTED)$/

/** Streams with their writers and readers, and what must be true of them in the end. */
export class StreamRun {
  readonly system: TestSystem
  readonly random: () => number
  readonly writings: Writing[] = []
  readonly readings: Reading[] = []
  readonly #keys: readonly string[]
  readonly #patience: Patience

  constructor(system: TestSystem, random: () => number, keys: readonly string[], patience: Patience) {
    this.system = system
    this.random = random
    this.#keys = keys
    this.#patience = patience
  }

  async open(): Promise<void> {
    for (const key of this.#keys) {
      const writing = await Writing.start(key, this.#anyNode, this.#patience)
      this.writings.push(writing)
      await writing.open()
    }
  }

  async add(key = this.pick(this.#keys) ?? ''): Promise<void> {
    this.readings.push(await Reading.start(key, this.#anyNode, this.#patience))
  }

  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.random() * items.length)]
  }

  /** Ends the streams that are left. Every reader, also one that comes last, has what was acknowledged. */
  async finish(): Promise<void> {
    await Promise.all(this.writings.filter(({ error }) => error === undefined).map((writing) => writing.end()))
    for (const key of this.#keys) await this.add(key)
    const isOver = () => expect(this.readings.filter((reading) => !reading.isOver).map(({ key }) => key)).toEqual([])
    await vi.waitFor(isOver, { timeout: SETTLE_TIMEOUT_MS, interval: 20 })
    for (const writing of this.writings) this.#examine(writing)
  }

  /** Everybody stops one stream: its writer learns of it once. */
  async stopAll(writing: Writing): Promise<void> {
    const readings = this.readings.filter(({ key }) => key === writing.key)
    // `stop` gives up after 10 s. A busy machine may need longer to find what is lost.
    const stop = async (reading: Reading): Promise<boolean> => {
      for (let count = 0; count < MAX_STOPS && writing.error === undefined; count++) {
        const { reader } = reading
        const error = await reader.stop().then(
          () => undefined,
          (error: unknown) => error,
        )
        if (error === undefined) return !reading.isOver
        if (!PASSING.test((error as WebMQError).code)) throw error
      }
      return false
    }
    const stopped = await Promise.all(readings.map(stop))
    if (writing.error === undefined && stopped.includes(true)) expect(writing.stopCount).toBe(1)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.writings, ...this.readings].map((participant) => participant.stop()))
  }

  #examine(writing: Writing): void {
    const { key, text, acknowledgedLength, isEnded, stopCount, error } = writing
    const statuses = new Set<string>()
    for (const { reader, shown } of this.readings.filter((reading) => reading.key === key)) {
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

  /** A node that is there, another one with each connection. */
  readonly #anyNode = (): number | undefined =>
    this.pick(this.system.nodes.map(({ port }) => port).filter((port) => port !== undefined))
}
