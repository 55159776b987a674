import type { GapReason } from 'webmq-client/protocol'
import type { Position, ReadRange, ReadResult } from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { DuplicateFilter, type DuplicateFilterOptions } from '../dedupe/duplicate-filter.js'
import { HistoryLog } from '../log/history-log.js'
import type { Link, LinkSource, LogFollower, LoggedDelivery } from './link.js'
import { LogArrivals } from './log-arrivals.js'

/** Options of a {@link LogReplica}; as in {@link ServerOptions}. */
export interface LogReplicaOptions extends HistoryOptions, DuplicateFilterOptions {
  readonly brokerTimeoutMs: number
}

/** What a {@link LogReplica} reports. */
export interface LogReplicaEvents {
  /**
   * A message was added.
   * @param wasDelivered This node has delivered it from the previous log.
   */
  added(delivery: LoggedDelivery, position: Position, wasDelivered: boolean): void
  /**
   * A message arrived that the log already has: resent, or published again under its id.
   * @param position Of the first message with its id, if it has one.
   */
  duplicate(delivery: LoggedDelivery, position: Position | undefined): void
  /** Messages of logged patterns may be missing before the next message. */
  gap(reason: GapReason): void
}

/** Time that a read waits for the replica to reach the position it asks for. */
const MAX_ARRIVAL_MS = 2_000

/**
 * This node's copy of the broker's log. It follows the log across links, drops duplicates, and answers reads from
 * memory.
 */
export class LogReplica implements LogFollower {
  readonly #options: LogReplicaOptions
  readonly #events: LogReplicaEvents
  readonly #log: HistoryLog
  readonly #arrivals = new LogArrivals()
  #duplicates: DuplicateFilter
  /** Messages of the previous log: their nodes may send some again into this one. */
  #formerDuplicates: DuplicateFilter | undefined
  /** The source of the last message. */
  #lastSource: LinkSource | undefined
  #hasBegun = false

  constructor(options: LogReplicaOptions, events: LogReplicaEvents) {
    this.#options = options
    this.#events = events
    this.#log = new HistoryLog(options)
    this.#duplicates = new DuplicateFilter(options)
  }

  /** The end of the replica; `undefined` before it first follows the log. */
  get position(): Position | undefined {
    return this.#hasBegun ? this.#log.position : undefined
  }

  /** Whether messages of this key are logged. */
  logs(key: string): boolean {
    return this.#log.logs(key)
  }

  /** Whether all messages that the pattern matches are logged. */
  covers(pattern: string): boolean {
    return this.#log.covers(pattern)
  }

  /** Position of the logged message with this id, as drivers carry it, if it is within the window. */
  positionOf(messageId: string): Position | undefined {
    const nowMs = Date.now()
    const position =
      this.#duplicates.positionWithin(messageId, nowMs) ?? this.#formerDuplicates?.positionWithin(messageId, nowMs)
    return position?.epoch === this.#log.position.epoch ? position : undefined
  }

  /** The node starts: the next `follow` does not continue from before the last stop. */
  start(): void {
    this.#hasBegun = false
  }

  /** Releases all waiting reads. */
  stop(): void {
    this.#arrivals.giveUp()
  }

  /** Follows the log over this link, from the end of the replica on. Resolves when the replica is complete. */
  async follow(link: Link): Promise<void> {
    const after = this.#hasBegun ? { ...this.#log.position, source: this.#lastSource } : undefined
    await link.follow?.(after, this)
  }

  begins(start: Position, isContinued: boolean): void {
    if (isContinued) return
    const reason = start.epoch === this.#log.position.epoch ? 'history-expired' : 'epoch-changed'
    this.#log.restart(start.epoch, start.offset)
    this.#lastSource = undefined
    this.#formerDuplicates = this.#hasBegun ? this.#duplicates : undefined
    this.#duplicates = new DuplicateFilter(this.#options)
    this.#arrivals.giveUp()
    if (this.#hasBegun) this.#events.gap(reason)
    this.#hasBegun = true
  }

  message(delivery: LoggedDelivery): void {
    const { key, payload, isBinary, source, messageId, offset, timeMs } = delivery
    if (this.#duplicates.has(delivery, timeMs)) {
      this.#events.duplicate(delivery, messageId === undefined ? undefined : this.#duplicates.positionOf(messageId))
      return
    }
    const position = { epoch: this.#log.position.epoch, offset }
    this.#duplicates.note(delivery, timeMs, position)
    this.#log.follow(offset, key, payload, isBinary, timeMs)
    this.#arrivals.arrived(offset)
    this.#lastSource = source
    const wasDelivered = this.#formerDuplicates?.has(delivery, timeMs) === true
    this.#events.added(delivery, position, wasDelivered)
  }

  /** As {@link Broker.read}. */
  read(range: ReadRange, patterns: readonly string[]): ReadResult | Promise<ReadResult> {
    const { since } = range
    const { epoch, offset } = this.#log.position
    if (since?.epoch !== epoch || since.offset <= offset) return this.#log.read(range, patterns)
    // The position is from a node that is ahead of this one. Answering now would report a false gap.
    const waitMs = Math.min(MAX_ARRIVAL_MS, this.#options.brokerTimeoutMs)
    return this.#arrivals.until(since.offset, waitMs).then(() => this.#log.read(range, patterns))
  }
}
