import type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerSink,
  BrokerStats,
  OutboundMessage,
  Position,
  Reader,
  ReadRange,
  ReadResult,
} from '../src/ports/broker.js'

/** A broker whose answers wait until a test releases them. */
export class SlowBroker implements Broker {
  readonly name = 'slow'
  readonly #inner: Broker
  readonly #waiting: (() => void)[] = []
  /** The next call throws it when it is released. */
  failure: Error | undefined

  constructor(inner: Broker) {
    this.#inner = inner
  }

  get capabilities(): BrokerCapabilities {
    return this.#inner.capabilities
  }

  /** Number of waiting calls. */
  get waitingCount(): number {
    return this.#waiting.length
  }

  /** Releases the oldest waiting call. */
  release(): void {
    this.#waiting.shift()?.()
  }

  start(sink: BrokerSink): Promise<void> {
    return this.#inner.start(sink)
  }

  /** Takes effect at once; the answer waits. */
  bind(pattern: string): Promise<void> {
    return this.#later(() => this.#inner.bind(pattern))
  }

  unbind(pattern: string): void | Promise<void> {
    return this.#inner.unbind(pattern)
  }

  publish(message: OutboundMessage): Promise<Accepted> {
    return this.#later(() => this.#inner.publish(message))
  }

  read(range: ReadRange, patterns: readonly string[], reader?: Reader): Promise<ReadResult> {
    return this.#later(() => this.#inner.read(range, patterns, reader))
  }

  position(): Promise<Position | undefined> {
    return this.#later(() => this.#inner.position())
  }

  stats(): BrokerStats {
    return this.#inner.stats()
  }

  stop(): Promise<void> {
    return this.#inner.stop()
  }

  async #later<T>(call: () => T | Promise<T>): Promise<T> {
    const { failure } = this
    this.failure = undefined
    const answer = failure === undefined ? await call() : undefined
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
    })
    if (failure !== undefined) throw failure
    return answer as T
  }
}
