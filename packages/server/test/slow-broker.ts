import type { Accepted, OutboundMessage, Position, Reader, ReadRange, ReadResult } from '../src/kernel/ports/broker.js'
import { BrokerFilter } from '../src/kernel/ports/broker-filter.js'

/** A broker whose answers wait until a test releases them. */
export class SlowBroker extends BrokerFilter {
  readonly #waiting: (() => void)[] = []
  /** The next call throws it when it is released. */
  failure: Error | undefined
  /** Payloads of the messages that it was given. */
  readonly published: string[] = []
  readonly #room = {
    isFull: false,
    pendingCount: 0,
    acceptedCount: 0,
    windowCount: 1,
    onRoom: undefined as (() => void) | undefined,
  }

  /** A test sets it full, and says when it is not any more. */
  override get room() {
    return this.#room
  }

  override get name(): string {
    return 'slow'
  }

  /** Number of waiting calls. */
  get waitingCount(): number {
    return this.#waiting.length
  }

  /** Releases the oldest waiting call. */
  release(): void {
    this.#waiting.shift()?.()
  }

  /** Takes effect at once; the answer waits. */
  override bind(pattern: string): Promise<void> {
    return this.#later(() => super.bind(pattern))
  }

  override publish(message: OutboundMessage): Promise<Accepted> {
    this.published.push(Buffer.from(message.payload).toString())
    return this.#later(() => super.publish(message))
  }

  override read(range: ReadRange, patterns: readonly string[], reader?: Reader): Promise<ReadResult> {
    return this.#later(() => super.read(range, patterns, reader))
  }

  override position(): Promise<Position | undefined> {
    return this.#later(() => super.position())
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
