import { setTimeout as sleep } from 'node:timers/promises'
import { WebMQError } from 'webmq-client'
import { nowUs } from '../../measure/clock.js'
import type { Publication, PublishFailure } from './log.js'
import { payloadOf } from './payload.js'
import { RecordedClient, type RecordedClientOptions } from './recorded-client.js'

export interface PublisherSightings {
  readonly acceptedUs: number[]
  readonly retriedUs: number[]
  readonly failures: PublishFailure[]
  readonly publications: Map<string, Publication[]>
}

/** Time before a refused publish is tried again. */
const RETRY_MS = 200

/**
 * A client that publishes at a steady rate, to its keys in turn. The messages of a key go out one after the other: the
 * next one when the last was accepted. So a refused message can be published again, with its id, without coming behind
 * a later one. Messages that arise meanwhile wait here.
 */
export class Publisher {
  readonly client: RecordedClient
  readonly #keys: readonly string[]
  readonly #intervalUs: number
  readonly #payloadBytes: number
  readonly #seen: PublisherSightings
  /** Keys with a publish in flight. */
  readonly #busy = new Set<string>()
  /** By key: how many of its messages have been answered. */
  readonly #settledCounts = new Map<string, number>()
  #nextUs: number | undefined
  #turn = 0

  constructor(
    options: RecordedClientOptions,
    plan: { readonly keys: readonly string[]; readonly publishRate: number; readonly payloadBytes: number },
    seen: PublisherSightings,
  ) {
    this.client = new RecordedClient(options)
    this.#keys = plan.keys
    this.#intervalUs = 1_000_000 / plan.publishRate
    this.#payloadBytes = plan.payloadBytes
    this.#seen = seen
    for (const key of plan.keys) seen.publications.set(key, [])
  }

  /** Whether it has been connected and publishes. */
  get isReady(): boolean {
    return this.#nextUs !== undefined
  }

  /** Connects; then {@link publishDue} publishes. @param offset Of its first message within the interval, 0 to 1. */
  async start(offset: number): Promise<void> {
    await this.client.library.connect()
    this.#nextUs = nowUs() + offset * this.#intervalUs
  }

  /** Publishes what is due. A late thread catches up, so that the load does not shrink. */
  publishDue(): void {
    if (this.#nextUs === undefined) return
    for (const endUs = nowUs(); this.#nextUs <= endUs; this.#nextUs += this.#intervalUs) {
      const key = this.#keys[this.#turn++ % this.#keys.length] ?? ''
      this.#seen.publications.get(key)?.push({ createdUs: this.#nextUs, startedUs: null, isAccepted: false })
      if (!this.#busy.has(key)) void this.#publishAll(key)
    }
  }

  /** Intended times of messages that are not answered, the oldest of each key. */
  get pending(): { readonly count: number; readonly oldestUs: number } {
    let count = 0
    let oldestUs = Number.POSITIVE_INFINITY
    for (const key of this.#busy) {
      const publications = this.#seen.publications.get(key) ?? []
      const settledCount = this.#settledCounts.get(key) ?? 0
      count += publications.length - settledCount
      oldestUs = Math.min(oldestUs, publications[settledCount]?.createdUs ?? oldestUs)
    }
    return { count, oldestUs }
  }

  /** Publishes the messages of a key until none waits. Never rejects. */
  async #publishAll(key: string): Promise<void> {
    this.#busy.add(key)
    const publications = this.#seen.publications.get(key) ?? []
    let number = this.#settledCounts.get(key) ?? 0
    for (let next = publications[number]; next !== undefined; next = publications[number]) {
      await this.#publish(key, number, next)
      this.#settledCounts.set(key, ++number)
    }
    this.#busy.delete(key)
  }

  /** Publishes until it is accepted, or refused for good. Never rejects. */
  async #publish(key: string, number: number, publication: Publication): Promise<void> {
    const payload = payloadOf({ number, createdUs: publication.createdUs }, this.#payloadBytes)
    const id = `${key}-${number}`.replaceAll('.', '-')
    publication.startedUs = nowUs()
    for (;;) {
      try {
        await this.client.library.publish(key, payload, { id })
        const atUs = nowUs()
        publication.isAccepted = true
        this.#seen.acceptedUs.push(atUs)
        this.client.worked(atUs)
        return
      } catch (error) {
        if (!(error instanceof WebMQError) || !error.retryable) {
          this.#seen.failures.push({ atUs: nowUs(), reason: String(error) })
          return
        }
        this.#seen.retriedUs.push(nowUs())
        await sleep(RETRY_MS)
      }
    }
  }
}
