import { WebMQError } from 'webmq-client/protocol'
import {
  type Accepted,
  BROKER_STOP_MS,
  type Broker,
  type BrokerCapabilities,
  type BrokerSink,
  type BrokerStats,
  type BrokerStatus,
  type OutboundMessage,
  type Position,
  type Reader,
  type ReadRange,
  type ReadResult,
} from '../../ports/broker.js'
import type { HistoryRules } from '../../ports/history-rules.js'
import { isPromise, type MaybePromise } from '../../ports/maybe-promise.js'
import type { Partitioning } from '../../ports/partition-of.js'
import { joinPositions } from '../../ports/position.js'
import { JointRead, readOne } from './joint-read.js'
import { Partition } from './partition.js'
import { PartitionMap } from './partition-map.js'
import { PendingBytes } from './pending-bytes.js'
import { StartGate } from './start-gate.js'
import { countersOf, sumOf, worstOf } from './sums.js'

/** Options of a {@link PartitionedBroker}. */
export interface PartitionedBrokerOptions extends Partitioning {
  /** What is logged. */
  readonly history: HistoryRules
  readonly brokerTimeoutMs: number
  readonly brokerMaxPendingBytes: number
  /** A partition that this node has not needed for so long stops; default 60,000. */
  readonly partitionIdleMs?: number
  /** An instance for everything that is not logged. */
  readonly base: Broker
  /** Makes an instance for a partition, with the rules of the log; it is not started. */
  createPartition(partition: number): MaybePromise<Broker>
  /** A partition could not be started or stopped. */
  onError(error: unknown): void
}

/** Clients that reconnect or page through history within this time find the copy that is there. */
const PARTITION_IDLE_MS = 60_000
/** Starting partitions copy their logs: more at once would take the network from live messages. */
const MAX_STARTS = 4
/** Of a read that concerns no partition. No partition has it, so whoever returns with it learns of a gap. */
const NOWHERE: Position = { epoch: 'none', offset: 0 }

/** A status, and why. */
interface Told {
  readonly status: BrokerStatus
  readonly cause?: Error | undefined
}

/**
 * A log in partitions: keys with the same first words are logged together, each partition by an instance of the adapter
 * with a namespace of its own. This node runs the instances that its listeners, publishers and readers need, so it gets
 * their messages alone. Another instance, the base, carries everything that is not logged.
 *
 * Each partition keeps what its adapter guarantees. There is no order between partitions.
 */
export class PartitionedBroker implements Broker {
  readonly name: string
  readonly capabilities: BrokerCapabilities
  readonly #options: PartitionedBrokerOptions
  readonly #map: PartitionMap
  readonly #base: Broker
  readonly #partitions: readonly Partition[]
  readonly #pending: PendingBytes
  /** Counters of the instances that have stopped. */
  #retired: readonly BrokerStats[] = []
  /** Not given to a partition yet. */
  #unused: Broker | undefined
  #address: string | undefined
  #sink: BrokerSink | undefined
  #baseStatus: Told = { status: 'down' }
  #told: BrokerStatus | undefined

  /** @param first Instance of the first partition; tells what the others can do. */
  private constructor(options: PartitionedBrokerOptions, first: Broker) {
    const { base, history, count, brokerTimeoutMs, partitionIdleMs = PARTITION_IDLE_MS } = options
    this.name = base.name
    // A key has one partition, so what an adapter keeps per key holds.
    this.capabilities = first.capabilities
    this.#options = options
    this.#map = new PartitionMap(options, history)
    this.#base = base
    this.#unused = first
    this.#pending = new PendingBytes(options.brokerMaxPendingBytes)
    const gate = new StartGate(MAX_STARTS)
    this.#partitions = Array.from({ length: count }, (_, index) => {
      const events = {
        deliver: (message: Parameters<BrokerSink['deliver']>[0]) => this.#sink?.deliver(message) === true,
        gap: (...[reason, isAffected]: Parameters<BrokerSink['gap']>) => this.#gap(index, reason, isAffected),
        refused: (message: Parameters<BrokerSink['refused']>[0]) => this.#sink?.refused(message),
        statusChanged: () => this.#tellStatus(),
        retired: (stats: BrokerStats) => {
          this.#retired = [sumOf([...this.#retired, countersOf(stats)])]
        },
        failed: (error: unknown) => options.onError(error),
      }
      const create = () => this.#createPartition(index)
      return new Partition(index, { create, gate, timeoutMs: brokerTimeoutMs, idleMs: partitionIdleMs, events })
    })
  }

  /** @throws what `createPartition` throws. */
  static async create(options: PartitionedBrokerOptions): Promise<PartitionedBroker> {
    return new PartitionedBroker(options, await options.createPartition(0))
  }

  /** Starts one partition too: a broker that cannot keep a log refuses now, not at the first listen. */
  async start(sink: BrokerSink): Promise<void> {
    this.#sink = sink
    this.#told = undefined
    await this.#base.start({
      deliver: (message) => sink.deliver(message),
      // The base knows no rules. What has no part in it misses nothing.
      gap: (reason, isAffected = () => true) =>
        sink.gap(reason, (pattern) => this.#isOnBase(pattern) && isAffected(pattern)),
      refused: (message) => sink.refused(message),
      status: (status, cause) => {
        this.#baseStatus = { status, cause }
        this.#tellStatus()
      },
    })
    try {
      await Promise.all(this.#partitions.map((partition) => partition.open()))
      await this.#partitions[0]?.begin()
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async bind(pattern: string): Promise<void> {
    const parts = this.#partitionsOf([pattern]).map((partition) => ({
      bind: () => partition.hold(),
      unbind: (): void | Promise<void> => partition.release(),
    }))
    const base = { bind: () => this.#base.bind(pattern), unbind: () => this.#base.unbind(pattern) }
    const all = this.#isOnBase(pattern) ? [base, ...parts] : parts
    const outcomes = await Promise.allSettled(all.map(async ({ bind }) => await bind()))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed === undefined) return
    for (const [index, { status }] of outcomes.entries()) if (status === 'fulfilled') await all[index]?.unbind()
    throw failed.reason
  }

  unbind(pattern: string): void | Promise<void> {
    for (const partition of this.#partitionsOf([pattern])) partition.release()
    if (this.#isOnBase(pattern)) return this.#base.unbind(pattern)
  }

  publish(message: OutboundMessage): Accepted | Promise<Accepted> {
    const partition = this.#partitionOf(message.key)
    if (partition === undefined) return this.#base.publish(message)
    return this.#pending.during([message], () => partition.publish(message))
  }

  async publishBatch(messages: readonly OutboundMessage[]): Promise<readonly Accepted[]> {
    const placesOf = new Map<Partition | undefined, number[]>()
    for (const [place, { key }] of messages.entries()) {
      const partition = this.#partitionOf(key)
      const places = placesOf.get(partition)
      if (places === undefined) placesOf.set(partition, [place])
      else places.push(place)
    }
    const results = new Array<Accepted>(messages.length)
    // Each begins before the first waits: the payloads are borrowed until then.
    const published = [...placesOf].map(async ([partition, places]) => {
      const part = places.map((place) => messages[place] as OutboundMessage)
      const accepted =
        partition === undefined
          ? await publishAll(this.#base, part)
          : await this.#pending.during(part, () => partition.publishBatch(part))
      for (const [index, place] of places.entries()) results[place] = accepted[index] as Accepted
    })
    await Promise.all(published)
    return results
  }

  read(range: ReadRange, patterns: readonly string[], reader?: Reader): ReadResult | Promise<ReadResult> {
    const [partition, ...others] = this.#partitionsOf(patterns)
    if (partition === undefined) {
      if (range.isState === true) throw new WebMQError('E_UNSUPPORTED', { detail: 'no rule retains these keys' })
      return { messages: [], position: NOWHERE, isPartial: false, gap: 'no-history' }
    }
    return others.length === 0
      ? readOne(partition, range, patterns, reader)
      : new JointRead(range, patterns, reader).run([partition, ...others])
  }

  position(patterns?: readonly string[]): MaybePromise<Position | undefined> {
    const partitions = patterns === undefined ? this.#partitions : this.#partitionsOf(patterns)
    const places = partitions.map(({ position }) => position)
    const join = (known: readonly (Position | undefined)[]) =>
      joinPositions(known.filter((position) => position !== undefined))
    return places.some(isPromise) ? Promise.all(places).then(join) : join(places as readonly (Position | undefined)[])
  }

  setAddress(address: string): void {
    this.#base.setAddress?.(address)
    this.#address = address
    this.#unused?.setAddress?.(address)
    for (const partition of this.#partitions) partition.setAddress(address)
  }

  stats(): BrokerStats {
    const running = this.#partitions.map(({ broker }) => broker?.stats()).filter((stats) => stats !== undefined)
    return sumOf([this.#base.stats(), ...running, ...this.#retired])
  }

  async stop(limitMs = BROKER_STOP_MS): Promise<void> {
    await Promise.all([this.#base.stop(limitMs), ...this.#partitions.map((partition) => partition.stop(limitMs))])
    this.#sink = undefined
  }

  /** Whether the base has a part in the pattern: keys of the servers, and keys that are not logged. */
  #isOnBase(pattern: string): boolean {
    return this.#map.hasUnlogged(pattern)
  }

  #partitionOf(key: string): Partition | undefined {
    const index = this.#map.ofKey(key)
    return index === undefined ? undefined : this.#partitions[index]
  }

  #partitionsOf(patterns: readonly string[]): readonly Partition[] {
    return this.#map.ofPatterns(patterns).map((index) => this.#partitions[index] as Partition)
  }

  /** A gap of a partition concerns patterns with a part in it. That part is logged, so its rules are asked about. */
  #gap(index: number, reason: Parameters<BrokerSink['gap']>[0], isAffected?: (pattern: string) => boolean): void {
    this.#sink?.gap(
      reason,
      (pattern) =>
        this.#map.ofPattern(pattern).includes(index) &&
        (isAffected === undefined || this.#map.rulesOf(pattern).some(isAffected)),
    )
  }

  async #createPartition(index: number): Promise<Broker> {
    const unused = index === 0 ? this.#unused : undefined
    if (unused !== undefined) {
      this.#unused = undefined
      return unused
    }
    const instance = await this.#options.createPartition(index)
    if (this.#address !== undefined) instance.setAddress?.(this.#address)
    return instance
  }

  #tellStatus(): void {
    const running = this.#partitions.filter(({ broker }) => broker !== undefined)
    const parts = running.map(({ status, statusCause: cause }): Told => ({ status, cause }))
    const { status, cause } = worstOf(this.#baseStatus, parts)
    if (status === this.#told) return
    this.#told = status
    this.#sink?.status(status, cause)
  }
}

function publishAll(broker: Broker, messages: readonly OutboundMessage[]): Promise<readonly Accepted[]> {
  return broker.publishBatch?.(messages) ?? Promise.all(messages.map((message) => broker.publish(message)))
}
