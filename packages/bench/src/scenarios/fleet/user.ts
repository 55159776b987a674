import { nowUs } from '../../measure/clock.js'
import { KeyLedger } from './key-ledger.js'
import type { Delivery, Irregularity, ToldGap, UserRecord } from './log.js'
import { readPayload } from './payload.js'
import { RecordedClient, type RecordedClientOptions } from './recorded-client.js'

/** Where the users of a thread write what they see. */
export interface Sightings {
  readonly deliveries: Delivery[]
  readonly gaps: ToldGap[]
  readonly irregularities: Irregularity[]
}

export class User {
  readonly client: RecordedClient
  readonly #keys: readonly string[]
  readonly #ledgers = new Map<string, KeyLedger>()
  readonly #seen: Sightings
  #readyUs: number | undefined

  constructor(options: RecordedClientOptions, keys: readonly string[], seen: Sightings) {
    this.client = new RecordedClient(options)
    this.#keys = keys
    this.#seen = seen
  }

  get isReady(): boolean {
    return this.#readyUs !== undefined
  }

  /** Connects and listens. The library tries until it is accepted. */
  start(pattern: string): void {
    const subscription = this.client.library.listen(pattern, (payload, { key }) => this.#receive(key, payload))
    subscription.on('ready', () => {
      this.#readyUs ??= nowUs()
      this.client.listens()
    })
    subscription.on('gap', ({ reason }) => {
      this.#seen.gaps.push({ client: this.client.name, atUs: nowUs(), reason })
    })
  }

  /** `undefined`: its listen was never accepted. */
  get record(): UserRecord | undefined {
    if (this.#readyUs === undefined) return undefined
    const received = new Map(
      [...this.#ledgers].map(([key, { first, next, holes }]) => [key, { first, next, holes: [...holes] }]),
    )
    return {
      client: this.client.name,
      isStream: this.client.isStream,
      readyUs: this.#readyUs,
      keys: this.#keys,
      received,
    }
  }

  #receive(key: string, payload: unknown): void {
    const atUs = nowUs()
    const message = readPayload(payload)
    if (message === undefined) {
      this.client.trouble = `${key} brought a message that nobody published`
      return
    }
    const { number, createdUs } = message
    const ledger = this.#ledgers.get(key) ?? new KeyLedger()
    this.#ledgers.set(key, ledger)
    const arrival = ledger.receive(number, atUs)
    this.client.worked(atUs)
    if (arrival !== 'delivered') {
      this.#seen.irregularities.push({ kind: arrival, client: this.client.name, key, number, createdUs })
    }
    if (arrival === 'doubled') return
    this.#seen.deliveries.push({ atUs, latencyUs: atUs - createdUs, isStream: this.client.isStream })
  }
}
