import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { WebMQServer } from 'webmq-server'
import type { Keys } from './keys'

/** Time after which another gateway goes on where one has ended without a word. */
const LEASE_MS = 2_000
/** The lease is renewed this often, and no read waits for longer. */
const RENEW_MS = 500
const RETRY_MS = 100
/** Events of one read. */
const BATCH_SIZE = 256

/** An event as the scripts have put it into the outbox. */
interface Entry {
  readonly entryId: string
  readonly key: string
  readonly id: string
  readonly payload: unknown
}

/**
 * Publishes the events of the outbox, and deletes each once the broker has accepted it. So it always begins with the
 * oldest event that may not be published, whoever published before.
 *
 * Of several gateways, the one with the lease does it; that saves work, but nothing depends on it. When two publish the
 * same events, each publishes in the order of the outbox and begins with one that is not confirmed. So the first copy of
 * an event never comes before the first copy of an earlier one, and second copies are dropped by their message id.
 */
export class Relay {
  readonly #redis: Redis
  readonly #keys: Keys
  readonly #server: Pick<WebMQServer, 'publish'>
  readonly #name = randomUUID()
  readonly #stopping = new AbortController()
  #heldAtMs = Number.NEGATIVE_INFINITY
  #running = Promise.resolve()
  #error: unknown

  /** @param redis A connection for this relay alone: its reads block. */
  constructor(redis: Redis, keys: Keys, server: Pick<WebMQServer, 'publish'>) {
    this.#redis = redis
    this.#keys = keys
    this.#server = server
  }

  /** Why nothing is published at present. */
  get error(): unknown {
    return this.#error
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    if (this.#redis.status === 'ready') await this.#redis.releaseLease(this.#keys.lease, this.#name)
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      let pauseMs = 0
      try {
        if (await this.#holds()) await this.#relay()
        else pauseMs = RENEW_MS
        this.#error = undefined
      } catch (error) {
        if (this.#error === undefined) console.error('The relay waits:', error)
        this.#error = error
        pauseMs = RETRY_MS
      }
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #holds(): Promise<boolean> {
    const nowMs = performance.now()
    if (nowMs - this.#heldAtMs < RENEW_MS) return true
    const isHeld = await this.#redis.holdLease(this.#keys.lease, this.#name, LEASE_MS)
    this.#heldAtMs = isHeld === 1 ? nowMs : Number.NEGATIVE_INFINITY
    return isHeld === 1
  }

  async #relay(): Promise<void> {
    const entries = await this.#read()
    for (const round of roundsOf(entries)) {
      // A process that stood still may come back later than ids are known for.
      if (performance.now() - this.#heldAtMs > LEASE_MS) return
      await Promise.all(round.map(({ key, id, payload }) => this.#server.publish(key, payload, { id })))
      await this.#redis.xdel(this.#keys.outbox, ...round.map(({ entryId }) => entryId))
    }
  }

  /** The oldest events; waits for one. */
  async #read(): Promise<Entry[]> {
    const from = ['STREAMS', this.#keys.outbox, '0'] as const
    const found = await this.#redis.xread('COUNT', BATCH_SIZE, 'BLOCK', RENEW_MS, ...from)
    return (found?.[0]?.[1] ?? []).map(([entryId, fields]) => {
      const [, key, , id, , payload] = fields as [string, string, string, string, string, string]
      return { entryId, key, id, payload: JSON.parse(payload) }
    })
  }
}

/**
 * Groups of events to publish at once: of each key one, so that an event is published after the one before it was accepted.
 * Otherwise a broker that breaks could accept the second of two alone.
 */
function roundsOf(entries: readonly Entry[]): Entry[][] {
  const rounds: Entry[][] = []
  const counts = new Map<string, number>()
  for (const entry of entries) {
    const round = counts.get(entry.key) ?? 0
    counts.set(entry.key, round + 1)
    rounds[round] ??= []
    rounds[round].push(entry)
  }
  return rounds
}
