import type { MaybePromise } from '../base/maybe-promise.js'
import type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerRoom,
  BrokerSink,
  OutboundMessage,
  Position,
  Reader,
  ReadRange,
  ReadResult,
} from './broker.js'
import type { BrokerStats } from './broker-stats.js'
import type { SharedLog } from './shared-log.js'

/**
 * A broker that forwards every call to another one. A subclass overrides the members that it changes. It has
 * `publishBatch` and `reachEnd` when the other broker has them. `broker-filter.test.ts` fails for a member of the port that is not
 * forwarded.
 */
export abstract class BrokerFilter implements Broker {
  readonly #broker: Broker
  publishBatch?: NonNullable<Broker['publishBatch']>
  readonly reachEnd?: NonNullable<Broker['reachEnd']>

  constructor(broker: Broker) {
    this.#broker = broker
    const { publishBatch, reachEnd } = broker
    if (publishBatch !== undefined) this.publishBatch = publishBatch.bind(broker)
    if (reachEnd !== undefined) this.reachEnd = reachEnd.bind(broker)
  }

  get name(): string {
    return this.#broker.name
  }

  get capabilities(): BrokerCapabilities {
    return this.#broker.capabilities
  }

  get room(): BrokerRoom | undefined {
    return this.#broker.room
  }

  get log(): SharedLog | undefined {
    return this.#broker.log
  }

  start(sink: BrokerSink): Promise<void> {
    return this.#broker.start(sink)
  }

  bind(pattern: string): MaybePromise<void> {
    return this.#broker.bind(pattern)
  }

  unbind(pattern: string): MaybePromise<void> {
    return this.#broker.unbind(pattern)
  }

  publish(message: OutboundMessage): MaybePromise<Accepted> {
    return this.#broker.publish(message)
  }

  read(range: ReadRange, patterns: readonly string[], reader?: Reader): MaybePromise<ReadResult> {
    return this.#broker.read(range, patterns, reader)
  }

  logs(key: string): boolean {
    return this.#broker.logs?.(key) ?? false
  }

  retains(key: string): boolean {
    return this.#broker.retains?.(key) ?? false
  }

  position(): MaybePromise<Position | undefined> {
    return this.#broker.position()
  }

  /** Does nothing when the other broker has no address. */
  setAddress(address: string): void {
    this.#broker.setAddress?.(address)
  }

  stats(): BrokerStats {
    return this.#broker.stats()
  }

  stop(limitMs?: number): Promise<void> {
    return this.#broker.stop(limitMs)
  }
}
