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
/** Message ids are known for 2 minutes. An event that has waited longer than this may have been published before that. */
const OLD_MS = 60_000
/** Events of one read. */
const BATCH_SIZE = 256

/** An event as the scripts have put it into the outbox. */
interface Entry {
  readonly entryId: string
  readonly key: string
  readonly id: string
  readonly payload: { readonly seq?: number }
}

type Node = Pick<WebMQServer, 'publish' | 'history'>

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
  readonly #server: Node
  readonly #name = randomUUID()
  readonly #stopping = new AbortController()
  #heldAtMs = Number.NEGATIVE_INFINITY
  #running = Promise.resolve()
  #error: unknown

  /** @param redis A connection for this relay alone: its reads block. */
  constructor(redis: Redis, keys: Keys, server: Node) {
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
      await Promise.all(round.map((entry) => this.#publish(entry)))
      await this.#redis.xdel(this.#keys.outbox, ...round.map(({ entryId }) => entryId))
    }
  }

  async #publish({ entryId, key, id, payload }: Entry): Promise<void> {
    const waitedMs = Date.now() - Number(entryId.split('-')[0])
    if (waitedMs > OLD_MS && (await this.#isLogged(key, payload.seq))) return
    await this.#server.publish(key, payload, { id })
  }

  /** Whether an event is in the log, or a later one of its item. */
  async #isLogged(key: string, seq = Number.POSITIVE_INFINITY): Promise<boolean> {
    const { messages } = await this.#server.history(key, { limit: 1 })
    const last = messages.at(-1)?.payload as Entry['payload'] | undefined
    return last?.seq !== undefined && last.seq >= seq
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
