import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../packages/client/test/seeded-random.js'
import type { Door } from '../../packages/server/test/texts/door.js'
import { DURABLE_DOORS } from '../../packages/server/test/texts/durable.js'
import { HTTP_DOORS } from '../../packages/server/test/texts/http.js'
import { SSE_DOORS } from '../../packages/server/test/texts/sse.js'
import { TEXTS } from '../../packages/server/test/texts/texts.js'
import { WEBSOCKET_DOORS } from '../../packages/server/test/texts/websocket.js'
import type { TrafficNode } from './node.js'
import type { TrafficOptions } from './options.js'
import { SharedActor } from './shared-writer.js'
import type { OutboxDatabase, TrafficSystem } from './system.js'
import type { Tally } from './tally.js'
import { pick, type Stage, StreamActor } from './writer.js'

/** Those who act at the same time. Each has keys of its own, so that one writer is the only one. */
const ACTORS = 4
const DOORS: readonly Door[] = [...WEBSOCKET_DOORS, ...HTTP_DOORS, ...DURABLE_DOORS, ...SSE_DOORS]
/** Above the limit of a payload. */
const LARGE_BYTES = 200_000
/** A reader who does not wait for more. */
const READ_MS = 1_500
export const HONEST_ROWS = 'outbox.honest'

/** Random traffic with one broker, until it is told to stop. */
export class TrafficPlay {
  readonly #system: TrafficSystem
  readonly #options: TrafficOptions
  readonly #tally: Tally
  readonly #outbox: OutboxDatabase | undefined
  readonly #stop = new AbortController()
  #acting: Promise<unknown> = Promise.resolve()

  constructor(system: TrafficSystem, options: TrafficOptions, tally: Tally, outbox: OutboxDatabase | undefined) {
    this.#system = system
    this.#options = options
    this.#tally = tally
    this.#outbox = outbox
  }

  begin(): void {
    this.#acting = Promise.all(Array.from({ length: ACTORS }, (_, index) => this.#act(index)))
  }

  /** Resolves when the last stream is ended and read. */
  async end(): Promise<void> {
    this.#stop.abort()
    await this.#acting
  }

  async #act(index: number): Promise<void> {
    const { nodes, name } = this.#system
    const random = seededRandom(this.#options.seed * 31 + index * 7 + name.length)
    const stage: Stage = { nodes, random, tally: this.#tally, violated: (what) => this.#violated(what) }
    const writers = [
      new StreamActor(stage, `stream.${index}.a`, 'WebSocket'),
      new StreamActor(stage, `stream.${index}.b`, 'POST /api/streams'),
      new SharedActor(stage, `stream.${index}.c`),
    ]
    const meanMs = (1_000 * ACTORS) / this.#options.perSecond
    while (!this.#stop.signal.aborted && this.#lives) {
      const startedAt = Date.now()
      await this.#actOnce(stage, writers).catch((error: unknown) => this.#violated(`${error}`))
      const restMs = 2 * random() * meanMs - (Date.now() - startedAt)
      if (restMs > 0) await sleep(restMs, undefined, { signal: this.#stop.signal }).catch(() => undefined)
    }
    for (const writer of writers) {
      if (this.#lives) await writer.close().catch((error: unknown) => this.#violated(`${error}`))
      writer.dispose()
    }
  }

  /** Of a node that has ended, its last words are told. */
  #violated(what: string): void {
    if (this.#lives) this.#tally.violated(`${this.#system.name}: ${what}`)
  }

  get #lives(): boolean {
    return this.#system.nodes.every(({ death }) => death === undefined)
  }

  async #actOnce(stage: Stage, writers: readonly (StreamActor | SharedActor)[]): Promise<void> {
    const { random, nodes } = stage
    const chance = random()
    const node = pick(random, nodes)
    if (chance < 0.5) return await pick(random, writers).step()
    if (chance < 0.7) return this.#options.isHostile ? await this.#odd(random, node) : undefined
    if (chance < 0.88) return await this.#read(random, node)
    if (chance < 0.94 || this.#outbox === undefined) return await this.#publish(random, node)
    await this.#insert(random, this.#outbox)
  }

  async #odd(random: () => number, node: TrafficNode): Promise<void> {
    const [door, text] = [pick(random, DOORS), pick(random, TEXTS)]
    await node.refresh()
    const outcome = await door.give(node, text).catch((error: unknown) => `thrown: ${error}`)
    // Who sends too much may be cut off before the answer can be read.
    const isCutOff = text.bytes.length > LARGE_BYTES && /EPIPE|ECONNRESET|socket hang up/.test(outcome)
    const isBug = /failed with|thrown|no answer|E_INTERNAL/.test(outcome) && !/failed with 503/.test(outcome)
    this.#tally.count(`odd texts, ${/^[\w/]+/.exec(door.name)?.[0]}`, outcome.replace(/(other|thrown).*/s, '$1'))
    if (isBug && !isCutOff) this.#violated(`${node.name}: ${text.name} at ${door.name}: ${outcome}`)
  }

  /** Of any stream, while it is written, and of odd ones. */
  async #read(random: () => number, node: TrafficNode): Promise<void> {
    const key = random() < 0.7 ? `stream.${Math.floor(random() * ACTORS)}.${pick(random, ['a', 'b', 'c'])}` : node.key()
    const path = pick(random, [
      ...[`/api/history?key=${key}&last=20`, `/api/streams?key=${key}`, `/streams/${key}`],
      ...[`/streams/${key}?offset=-1&live=long-poll`, `/streams/${key}?offset=-1&live=sse`],
      ...[`/sse?stream=${key}`, `/sse?listen=${key}&last=10`, `/sse?listen=state.%23`, `/api/presence?key=${key}`],
    ])
    const isLive = path.startsWith('/sse') || path.includes('live=')
    const door = `GET ${path.split('?')[0]?.replace(key, '…')}${/live=[\w-]+/.exec(path)?.[0] ?? ''}`
    const asking = isLive ? node.status(path) : node.http('GET', path).then(({ status }) => status)
    const late = sleep(READ_MS, 'not answered yet' as const, { ref: false })
    const status = await Promise.race([asking, isLive ? late : asking])
    // A long poll may answer later, or break when its node stops.
    asking.catch(() => undefined)
    this.#tally.count(door, `${status}`)
    if (typeof status === 'number' && status >= 500 && ![503, 507].includes(status))
      this.#violated(`${node.name}: ${door} of ${key} answers ${status}`)
  }

  async #publish(random: () => number, node: TrafficNode): Promise<void> {
    const key = random() < 0.5 ? `state.${Math.floor(random() * 50)}` : `plain.${Math.floor(random() * 50)}`
    const body = Buffer.from(JSON.stringify({ key, payload: { at: random() } }))
    const { status } = await node.http('POST', '/api/publish', body, { 'content-type': 'application/json' })
    this.#tally.count('POST /api/publish', `${status}`)
    if (status !== 200) this.#violated(`${node.name}: an honest publish is answered ${status}`)
  }

  async #insert(random: () => number, outbox: OutboxDatabase): Promise<void> {
    const text = this.#options.isHostile && random() < 0.5 ? pick(random, TEXTS).bytes.toString() : undefined
    const outcome = await outbox.insert(text === undefined ? HONEST_ROWS : 'outbox.odd', text ?? '{"row":1}')
    this.#tally.count('outbox', outcome)
    if (text === undefined && outcome !== 'inserted') this.#violated(`an honest row is ${outcome}`)
  }
}
