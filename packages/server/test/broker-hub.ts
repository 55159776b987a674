import { matches, WebMQError } from 'webmq-client/protocol'
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

/** How long a message takes from one node to another, in milliseconds. */
export type Delay = () => number

/**
 * Connects the brokers of several nodes in memory. Messages take time and keep their order per pair of nodes. Links can
 * be cut.
 */
export class BrokerHub {
  readonly #delayMs: Delay
  readonly #brokers = new Set<HubBroker>()

  /** @param delayMs Default: one turn. */
  constructor(delayMs: Delay = () => 0) {
    this.#delayMs = delayMs
  }

  createBroker(): HubBroker {
    const broker = new HubBroker((message) => this.#carry(broker, message), this.#delayMs)
    this.#brokers.add(broker)
    return broker
  }

  #carry(from: HubBroker, message: OutboundMessage): void {
    const copy = { ...message, payload: new Uint8Array(message.payload) }
    for (const to of this.#brokers) from.sendTo(to, copy, this.#delayMs() + from.lagMs)
  }
}

/** The broker of one node on a {@link BrokerHub}. Answers a turn later. */
export class HubBroker implements Broker {
  readonly name = 'hub'
  readonly capabilities: BrokerCapabilities = {
    history: false,
    retained: false,
    ordered: false,
    sharedLog: false,
    confirms: true,
    queueGroups: true,
    durable: false,
    manyNodes: true,
  }
  readonly #carry: (message: OutboundMessage) => void
  readonly #confirmMs: Delay
  readonly #bound = new Set<string>()
  /** Arrival time of the last message to each node: the next one must not overtake it. */
  readonly #arrivals = new Map<HubBroker, number>()
  #sink: BrokerSink | undefined
  #status: BrokerStatus = 'down'
  /** Grows when the link is cut: messages of an older number are lost. */
  #life = 0
  publishedCount = 0
  /** How much later messages of this node arrive than those of others. */
  lagMs = 0
  /** What waits to go out and to come in while the node stands still. */
  #held: (() => void)[] | undefined

  constructor(carry: (message: OutboundMessage) => void, confirmMs: Delay) {
    this.#carry = carry
    this.#confirmMs = confirmMs
  }

  get patterns(): readonly string[] {
    return [...this.#bound]
  }

  /** Cuts the link to all other nodes. Messages that are on their way are lost. */
  cut(): void {
    this.#life++
    this.#status = 'down'
    this.#sink?.status('down')
  }

  /** Restores the link. */
  mend(): void {
    if (this.#status === 'up' || this.#sink === undefined) return
    this.#status = 'up'
    this.#sink.gap('broker-lost')
    this.#sink.status('up')
  }

  /** The node stands still: nothing goes out or comes in, and nothing is lost. */
  freeze(): void {
    this.#held ??= []
  }

  thaw(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const go of held) go()
  }

  /** Ends the process: no more messages from it or to it. */
  crash(): void {
    this.#life++
    this.#status = 'down'
    this.#sink = undefined
  }

  sendTo(to: HubBroker, message: OutboundMessage, delayMs: number): void {
    const atMs = Math.max(Date.now() + delayMs, this.#arrivals.get(to) ?? 0)
    this.#arrivals.set(to, atMs)
    const [life, lifeOfOther] = [this.#life, to.#life]
    setTimeout(() => {
      if (life === this.#life && lifeOfOther === to.#life) to.#take(message)
    }, atMs - Date.now())
  }

  start(sink: BrokerSink): Promise<void> {
    this.#sink = sink
    this.#status = 'up'
    sink.status('up')
    return Promise.resolve()
  }

  bind(pattern: string): Promise<void> {
    if (this.#status !== 'up') return Promise.reject(new WebMQError('E_BROKER_UNAVAILABLE'))
    this.#bound.add(pattern)
    return Promise.resolve()
  }

  unbind(pattern: string): void {
    this.#bound.delete(pattern)
  }

  async publish(message: OutboundMessage): Promise<Accepted> {
    if (this.#status !== 'up') throw new WebMQError('E_BROKER_UNAVAILABLE')
    this.publishedCount++
    if (this.#held !== undefined) await new Promise<void>((resolve) => this.#held?.push(resolve))
    this.#carry(message)
    const confirmMs = this.#confirmMs()
    if (confirmMs > 0)
      await new Promise((resolve) => {
        setTimeout(resolve, confirmMs)
      })
    return { isDuplicate: false }
  }

  read(): ReadResult {
    throw new WebMQError('E_UNSUPPORTED')
  }

  position(): Position | undefined {
    return undefined
  }

  stats(): BrokerStats {
    const none = {
      rejectedCount: 0,
      receivedCount: 0,
      surplusCount: 0,
      malformedCount: 0,
      lostCount: 0,
      behindCount: 0,
    }
    return { ...none, acceptedCount: this.publishedCount, pendingCount: 0, pendingBytes: 0 }
  }

  stop(): Promise<void> {
    // Earlier messages are still on their way.
    this.#sink = undefined
    this.#status = 'down'
    return Promise.resolve()
  }

  #take(message: OutboundMessage): void {
    if (this.#held !== undefined) {
      this.#held.push(() => this.#take(message))
      return
    }
    const { key, payload, isBinary } = message
    if (this.#status === 'up' && [...this.#bound].some((pattern) => matches(pattern, key)))
      this.#sink?.deliver({ key, payload, isBinary })
  }
}
