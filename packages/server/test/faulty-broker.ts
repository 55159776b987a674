import { type GapReason, WebMQError } from 'webmq-client/protocol'
import type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerSink,
  BrokerStatus,
  OutboundMessage,
  Position,
  ReadResult,
} from '../src/kernel/ports/broker.js'
import type { BrokerStats } from '../src/kernel/ports/broker-stats.js'

/** A call that waits for the broker to be up. */
interface Waiting {
  go(): void
  fail(error: WebMQError): void
}

/** Options of a {@link FaultyBroker}. */
export interface FaultyBrokerOptions {
  /** How long a call waits while the broker is away; default 60,000, longer than any test. */
  readonly timeoutMs?: number
  /** The broker is away at first: `start` waits. */
  readonly isAway?: boolean
}

/**
 * A broker that a test can take away and bring back. It behaves like a broker behind a network. While it is away, binds
 * and publishes wait and are refused after a time, and messages of other nodes are missed. When it is back, it reports
 * `gap` before `up`. It answers one turn later, even when it is up. It has no history.
 */
export class FaultyBroker implements Broker {
  readonly name = 'faulty'
  readonly capabilities: BrokerCapabilities = {
    history: false,
    retained: false,
    ordered: true,
    sharedLog: false,
    confirms: true,
    queueGroups: false,
    durable: false,
    manyNodes: true,
  }
  readonly #timeoutMs: number
  readonly #bound = new Set<string>()
  readonly #waiting = new Set<Waiting>()
  readonly #counts = { acceptedCount: 0, rejectedCount: 0, receivedCount: 0, lostCount: 0 }
  #status: BrokerStatus
  #sink: BrokerSink | undefined
  #pendingCount = 0
  #pendingBytes = 0
  isStopped = false

  constructor({ timeoutMs = 60_000, isAway = false }: FaultyBrokerOptions = {}) {
    this.#timeoutMs = timeoutMs
    this.#status = isAway ? 'down' : 'up'
  }

  /** Bound patterns. */
  get patterns(): string[] {
    return [...this.#bound]
  }

  /** Number of waiting calls. */
  get waitingCount(): number {
    return this.#waiting.size
  }

  /** Takes the broker away. */
  lose(cause?: Error): void {
    this.#status = 'down'
    this.#counts.lostCount++
    this.#sink?.status('down', cause)
  }

  /** Lets the broker refuse messages for now. */
  block(cause?: Error): void {
    this.#status = 'blocked'
    this.#sink?.status('blocked', cause)
  }

  /** Brings the broker back: reports the gap, then continues waiting calls. */
  recover(gap: GapReason | undefined = this.#status === 'down' ? 'broker-lost' : undefined): void {
    this.#status = 'up'
    if (gap !== undefined) this.#sink?.gap(gap)
    this.#sink?.status('up')
    for (const { go } of [...this.#waiting]) go()
  }

  /** Delivers a message of another node. */
  deliver(key: string, json: unknown): void {
    if (this.#status === 'down') return
    this.#counts.receivedCount++
    this.#sink?.deliver({ key, payload: Buffer.from(JSON.stringify(json)), isBinary: false })
  }

  async start(sink: BrokerSink): Promise<void> {
    this.#sink = sink
    await this.#whenUp()
    sink.status('up')
  }

  async bind(pattern: string): Promise<void> {
    await this.#whenUp()
    this.#bound.add(pattern)
  }

  unbind(pattern: string): void {
    this.#bound.delete(pattern)
  }

  async publish(message: OutboundMessage): Promise<Accepted> {
    const { key, isBinary, publisher } = message
    const payload = new Uint8Array(message.payload)
    this.#pendingCount++
    this.#pendingBytes += payload.length
    try {
      await this.#whenUp('up')
    } catch (error) {
      this.#counts.rejectedCount++
      throw error
    } finally {
      this.#pendingCount--
      this.#pendingBytes -= payload.length
    }
    this.#counts.acceptedCount++
    this.#sink?.deliver({ key, payload, isBinary, ...(publisher === undefined ? {} : { publisher }) })
    return { isDuplicate: false }
  }

  read(): ReadResult {
    throw new WebMQError('E_UNSUPPORTED')
  }

  position(): Position | undefined {
    return undefined
  }

  stats(): BrokerStats {
    const pending = { pendingCount: this.#pendingCount, pendingBytes: this.#pendingBytes }
    return { ...this.#counts, surplusCount: 0, malformedCount: 0, behindCount: 0, ...pending }
  }

  stop(): Promise<void> {
    this.isStopped = true
    for (const { fail } of [...this.#waiting]) fail(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'stopped' }))
    this.#sink?.status('down')
    this.#sink = undefined
    return Promise.resolve()
  }

  async #whenUp(needed?: 'up'): Promise<void> {
    if (needed === undefined ? this.#status !== 'down' : this.#status === 'up') return
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer)
        this.#waiting.delete(waiting)
        settle()
      }
      const waiting = { go: () => end(resolve), fail: (error: WebMQError) => end(() => reject(error)) }
      const timer = setTimeout(
        () => waiting.fail(new WebMQError('E_BROKER_UNAVAILABLE', { detail: `not reached in ${this.#timeoutMs} ms` })),
        this.#timeoutMs,
      )
      this.#waiting.add(waiting)
    })
  }
}
