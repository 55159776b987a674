import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'
import { Relay } from './relay.js'

/** A message that was published, and what became of it. Times are those of `performance.now()`. */
export interface Published {
  readonly key: string
  readonly beganAtMs: number
  outcome: 'pending' | 'accepted' | 'unknown'
  settledAtMs: number
  /** Where it stands in the log, as its publisher was told. */
  position: string | undefined
}

/** What a message says. */
export interface Payload {
  readonly publisher: number
  readonly number: number
}

/** Publishes of one publisher that wait for their answer: enough to keep the connection busy. */
const WINDOW = 32
/** Those that are published twice wait for each other, so that their order is certain. */
const PUBLISH_TIMEOUT_MS = 8_000

/** Publishes numbers, as fast as they are accepted, to one key after the other. */
export class Publisher {
  readonly published: Published[] = []
  readonly #index: number
  readonly #keys: readonly string[]
  readonly #relays: readonly Relay[]
  readonly #clients: readonly WebMQClient[]
  readonly #maxCount: number
  #isPublishing = false
  #loop: Promise<unknown> | undefined

  private constructor(index: number, keys: readonly string[], relays: readonly Relay[], maxCount: number) {
    this.#index = index
    this.#keys = keys
    this.#relays = relays
    this.#maxCount = maxCount
    this.#clients = relays.map(
      (relay) =>
        new WebMQClient({ url: relay.url, WebSocket, reconnect: { minMs: 2, maxMs: 50 }, heartbeatTimeoutMs: 200 }),
    )
  }

  /** @param targets Ports of the nodes: each message is published on all of them, with one id. */
  static async start(
    index: number,
    keys: readonly string[],
    targets: readonly (() => number | undefined)[],
    maxCount: number,
  ): Promise<Publisher> {
    const relays = await Promise.all(targets.map((target) => Relay.start(target)))
    const publisher = new Publisher(index, keys, relays, maxCount)
    await Promise.all(publisher.#clients.map((client) => client.connect()))
    return publisher
  }

  /** Whether it has published all that it may. */
  get isFull(): boolean {
    return this.published.length >= this.#maxCount
  }

  /** Publishes until {@link pause}, or `maxCount` messages. */
  begin(): void {
    this.#isPublishing = true
    // One that publishes on several nodes waits for every message: else the order of two would be left to chance.
    const width = this.#clients.length === 1 ? WINDOW : 1
    const lane = async () => {
      while (this.#isPublishing && !this.isFull) await this.publish()
    }
    this.#loop = Promise.all(Array.from({ length: width }, lane))
  }

  /** Resolves when every publish was answered. */
  async pause(): Promise<void> {
    this.#isPublishing = false
    await this.#loop
  }

  /** Publishes the next number; resolves when its fate is known. */
  async publish(key?: string): Promise<Published> {
    const number = this.published.length
    const record: Published = {
      key: key ?? this.#keys[number % this.#keys.length] ?? '',
      beganAtMs: performance.now(),
      outcome: 'pending',
      settledAtMs: Number.POSITIVE_INFINITY,
      position: undefined,
    }
    this.published.push(record)
    const payload: Payload = { publisher: this.#index, number }
    const id = `${this.#keys[0]?.replaceAll('.', '_')}-${this.#index}-${number}`
    const attempts = await Promise.allSettled(
      this.#clients.map((client) => client.publish(record.key, payload, { id, timeoutMs: PUBLISH_TIMEOUT_MS })),
    )
    record.settledAtMs = performance.now()
    record.outcome = 'unknown'
    for (const attempt of attempts) {
      if (attempt.status === 'rejected') continue
      record.outcome = 'accepted'
      record.position ??= attempt.value.position
    }
    return record
  }

  /** Resets its connections; it comes back to where its targets are now. */
  cut(): void {
    for (const relay of this.#relays) relay.inflict('cut')
  }

  async stop(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close({ flushMs: 0 })))
    await Promise.all(this.#relays.map((relay) => relay.stop()))
  }
}
