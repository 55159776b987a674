import { WebMQError } from 'webmq-client/protocol'
import { deferred } from '../../../kernel/base/deferred.js'
import type { MaybePromise } from '../../../kernel/base/maybe-promise.js'
import { within } from '../../../kernel/base/within.js'
import type {
  Accepted,
  OutboundMessage,
  Position,
  Reader,
  ReadRange,
  ReadResult,
  RefusedMessage,
} from '../../../kernel/ports/broker.js'
import { inboundDefect, refusedMessage } from '../../../kernel/ports/inbound-check.js'
import { accepted } from '../../../kernel/ports/messages.js'
import { isRollUp } from '../../../kernel/ports/roll-up.js'
import type { LogPlace } from '../../../kernel/ports/shared-log.js'
import { DuplicateFilter } from '../dedupe/duplicate-filter.js'
import type { HistoryLog } from '../log/history-log.js'
import { matchedBy } from '../log/wants.js'
import type { LinkLog, LinkSource, LogFollower, LoggedDelivery } from './link.js'
import { LogArrivals } from './log-arrivals.js'
import type { MarkedLog } from './marked-log.js'
import type { RemoteBrokerOptions } from './options.js'
import type { PendingPublishes } from './pending-publishes.js'
import type { Receiver } from './receiver.js'
import { RetainedCopies } from './retained-copies.js'

/**
 * `empty`: it has not followed the log since the node started. `copying`: messages that were logged before it began are
 * missing. `complete`: it has them all. `former`: the node has stopped.
 */
type ReplicaState = 'empty' | 'copying' | 'complete' | 'former'

export interface LogReplicaParts {
  readonly options: RemoteBrokerOptions
  readonly log: HistoryLog
  readonly marked: MarkedLog
  readonly receiver: Receiver
  readonly pending: PendingPublishes
}

/** A pattern is matched against one key. */
const NO_LIMIT = { left: Number.POSITIVE_INFINITY }

/**
 * This node's copy of the broker's log. It follows the log across links, drops duplicates, and answers reads from
 * memory.
 */
export class LogReplica implements LogFollower {
  readonly #parts: LogReplicaParts
  readonly #log: HistoryLog
  readonly #arrivals: LogArrivals
  #duplicates: DuplicateFilter
  /** Messages of the previous log: their nodes may send some again into this one. */
  #formerDuplicates: DuplicateFilter | undefined
  /** When the last message counted as logged, for the window of ids. */
  #loggedAtMs = Number.NEGATIVE_INFINITY
  #state: ReplicaState = 'empty'
  /** Reads that were refused because the replica was behind. */
  behindCount = 0
  /** As in {@link LogStats}. */
  lagMs = 0
  readonly #copies: RetainedCopies
  /** A link reads what was logged before it. */
  #isCatchingUp = false
  /** Settles when the state is no longer `copying`. */
  #copied = deferred()

  constructor(parts: LogReplicaParts) {
    const { options } = parts
    this.#parts = parts
    this.#log = parts.log
    this.#arrivals = new LogArrivals((place) => this.#isAhead(place), options.brokerTimeoutMs)
    this.#duplicates = new DuplicateFilter(options)
    this.#copies = new RetainedCopies({
      maxMessages: options.historyMaxMessages,
      maxBytes: options.historyMaxBytes,
      random: Math.random,
      copy: (message) => this.#copy(message),
    })
  }

  /** Position of the logged message with this id, if it is within the window. */
  positionOf(messageId: string): Position | undefined {
    const nowMs = performance.now()
    const position =
      this.#duplicates.ids.positionWithin(messageId, nowMs) ??
      this.#formerDuplicates?.ids.positionWithin(messageId, nowMs)
    return position?.epoch === this.#log.epoch ? position : undefined
  }

  /** The broker says that a message of this node has the id of the one at this position. */
  async confirmDuplicate(sequence: number, position: LogPlace): Promise<void> {
    const isAhead = this.#isAhead(position)
    if (isAhead) await this.#arrivals.until(position.offset)
    // When another log has begun meanwhile, the message is sent into that one.
    const isOfLog = position.epoch === this.#log.epoch && !this.#log.isAfterEnd(position)
    const known = isOfLog ? this.#log.positionAt(position.offset) : { ...position, fingerprint: 0 }
    if (!isAhead || isOfLog) this.#parts.pending.confirm(sequence, false, accepted(known, true))
  }

  /** The node starts: the next `follow` does not continue from before the last stop. */
  start(): void {
    this.#state = 'empty'
    this.#parts.marked.start()
  }

  /** Releases all waiting reads. */
  stop(): void {
    this.#state = 'former'
    this.#arrivals.giveUp()
    this.#copied.resolve()
    this.#parts.marked.stop()
  }

  /** Follows the log over this link, from the end of the replica on. Resolves when the replica is complete. */
  async follow(link: LinkLog): Promise<void> {
    this.#arrivals.link = link
    this.#isCatchingUp = true
    await link.follow(this.#hasBegun ? this.#log.position : undefined, this)
    await this.#parts.marked.opened(link, this.#log)
    this.#isCatchingUp = false
    if (this.#state === 'copying') this.#state = 'complete'
    this.#copied.resolve()
  }

  begins(start: Position, isContinued: boolean): void {
    if (isContinued) return
    const isSameEpoch = start.epoch === this.#log.epoch
    const reason = isSameEpoch ? 'history-expired' : 'epoch-changed'
    const hadBegun = this.#hasBegun
    if (hadBegun && !isSameEpoch) this.#parts.marked.left(this.#log.epoch)
    // An epoch that begins on a live link has no messages yet.
    if (this.#isCatchingUp && (this.#state === 'empty' || this.#state === 'complete')) {
      this.#state = 'copying'
      this.#copied = deferred()
    }
    this.#log.restart(start.epoch, start.offset, start.fingerprint)
    this.#copies.begin(this.#log.retained)
    this.#formerDuplicates = hadBegun ? this.#duplicates : undefined
    this.#duplicates = new DuplicateFilter(this.#parts.options)
    this.#loggedAtMs = Number.NEGATIVE_INFINITY
    // Positions of the same epoch may still come.
    if (isSameEpoch) this.#arrivals.arrived(start.offset)
    else this.#arrivals.giveUp()
    // Also to patterns that are logged in part: some may have gone live after they were told of the lost link.
    if (hadBegun) this.#parts.receiver.gap(reason)
  }

  message(delivery: LoggedDelivery): void {
    const { key, payload, source, messageId, offset, fingerprint, attributes } = delivery
    const nowMs = Date.now()
    const timeMs = Math.min(delivery.timeMs, nowMs)
    const loggedAtMs = this.#noteLogged(nowMs - timeMs)
    if (this.#duplicates.has(delivery, loggedAtMs)) {
      // To a node that never had the first copy, this is a message with a position.
      this.skipped(offset, fingerprint)
      this.#parts.receiver.countLogged(true)
      // The same message, resent, or another message with its id.
      const first = messageId === undefined ? undefined : this.#duplicates.ids.positionOf(messageId)
      this.#confirmOwn(source, accepted(first, true))
      return
    }
    const position = { epoch: this.#log.epoch, offset, fingerprint }
    this.#duplicates.note(delivery, loggedAtMs, position)
    const { maxPayloadBytes } = this.#parts.options
    const defect = inboundDefect(key, payload, maxPayloadBytes)
    if (defect !== undefined) {
      this.#refuse(refusedMessage(defect, key, payload, maxPayloadBytes), position, source)
      return
    }
    const { copyOf } = attributes ?? {}
    if (copyOf !== undefined) {
      this.#noteCopy(delivery, copyOf, position)
      return
    }
    this.#log.follow(delivery)
    this.#copies.logged(key, payload.length, offset)
    this.lagMs = nowMs - timeMs
    this.#arrivals.arrived(offset)
    this.#parts.receiver.countLogged(false)
    // Before the sender can send it again.
    this.#confirmOwn(source, { position, isDuplicate: false })
    if (isRollUp(attributes)) return
    const wasDelivered = this.#formerDuplicates?.has(delivery, loggedAtMs) === true
    if (!wasDelivered) this.#parts.receiver.give(delivery, position)
    // Sent again into this log. Listeners that have come since it began have not had it.
    else if (!this.#isRepeating)
      this.#parts.receiver.gap('epoch-changed', (pattern) => matchedBy([pattern])(key, timeMs, NO_LIMIT))
  }

  /**
   * When a message counts as logged, by `performance.now()`: on receipt, or by its age if it was logged before this link. The
   * clock of the node that published it may be wrong: a message never counts as older than the one before.
   */
  #noteLogged(ageMs: number): number {
    const atMs = performance.now() - (this.#isCatchingUp ? ageMs : 0)
    this.#loggedAtMs = Math.max(this.#loggedAtMs, atMs)
    return this.#loggedAtMs
  }

  /** @param copyOf Offset of the message that it is a copy of. */
  #noteCopy(delivery: LoggedDelivery, copyOf: number, position: Position): void {
    const { key, payload, isBinary, source } = delivery
    const { copyOf: _, copyFingerprint = 0, ...attributes } = delivery.attributes ?? {}
    const { offset } = position
    this.skipped(offset, position.fingerprint)
    // Another program may have written it.
    const isPossible = copyOf < offset
    const message = { key, payload, isBinary, offset: copyOf, fingerprint: copyFingerprint, attributes }
    const isCurrent = isPossible && this.#log.retained?.noteCopy(message, offset)
    this.#copies.logged(key, payload.length, offset)
    this.#parts.receiver.countLogged(false)
    this.#confirmOwn(source, { position, isDuplicate: false })
    if (this.#parts.receiver.isOwn(source) && isCurrent === false) this.#copies.outdated(key)
  }

  malformed(offset: number, fingerprint: number, detail: string, key?: string): void {
    const position = { epoch: this.#log.epoch, offset, fingerprint }
    this.#refuse({ reason: 'malformed', pattern: key ?? '#', detail }, position, undefined)
  }

  unlogged(offset: number, fingerprint: number, key: string): void {
    this.#log.refuse(offset, fingerprint, key)
    this.#arrivals.arrived(offset)
  }

  skipped(offset: number, fingerprint: number): void {
    this.#log.skipTo(offset, fingerprint)
    this.#arrivals.arrived(offset)
  }

  began(offset: number): void {
    this.#log.began(offset)
  }

  /**
   * As {@link Broker.read}.
   * @throws {WebMQError} `E_NODE_BEHIND` when the replica does not reach `since` or `before` in time.
   */
  read(range: ReadRange, patterns: readonly string[], reader?: Reader): ReadResult | Promise<ReadResult> {
    if (this.#isRepeating || (range.isState === true && this.#state === 'copying'))
      return this.#whole().then(() => this.read(range, patterns, reader))
    const awaited = range.since ?? range.before
    if (awaited === undefined || !this.#log.isAfterEnd(awaited)) return this.#log.read(range, patterns, reader)
    return this.#arrivals.waitFor(awaited).then(() => {
      if (!this.#log.isAfterEnd(awaited)) return this.#log.read(range, patterns, reader)
      this.behindCount++
      throw new WebMQError('E_NODE_BEHIND')
    })
  }

  /** As {@link Broker.reachEnd}. */
  async reachEnd(): Promise<void> {
    const end = await this.#arrivals.reachEnd()
    if (end?.epoch === this.#log.epoch && this.#hasBegun && !this.#log.isAfterEnd(end)) return
    this.behindCount++
    throw new WebMQError('E_NODE_BEHIND')
  }

  /** As {@link Broker.position}. */
  end(): MaybePromise<Position | undefined> {
    if (this.#isRepeating) return this.#whole().then(() => this.#log.position)
    return this.#hasBegun ? this.#log.position : undefined
  }

  /** Whether messages of the log to come were delivered from the previous one: live, they are left out. */
  get #isRepeating(): boolean {
    return this.#state === 'copying' && this.#formerDuplicates !== undefined
  }

  /** Half of a log has half of the state. */
  async #whole(): Promise<void> {
    await within(this.#copied.promise, this.#parts.options.brokerTimeoutMs)
    if (this.#state !== 'complete')
      throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the node has not read the log yet' })
  }

  /** Whether it has followed the log since the node started. */
  get #hasBegun(): boolean {
    return this.#state === 'copying' || this.#state === 'complete'
  }

  #refuse(message: RefusedMessage, position: Position, source: LinkSource | undefined): void {
    // With an invalid key, nobody can have listened to it.
    const { offset, fingerprint } = position
    if (message.pattern === undefined) this.#log.skipTo(offset, fingerprint)
    else this.#log.refuse(offset, fingerprint, message.pattern)
    this.#arrivals.arrived(offset)
    this.#parts.receiver.countLogged(false)
    this.#confirmOwn(source, { position, isDuplicate: false })
    this.#parts.receiver.refused(message)
  }

  #confirmOwn(source: LinkSource | undefined, answer: Accepted): void {
    if (this.#parts.receiver.isOwn(source)) this.#parts.pending.confirm(source.sequence, false, answer)
  }

  async #copy(message: OutboundMessage): Promise<void> {
    if (this.#state === 'former') throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it is not started' })
    await this.#parts.pending.send(message, true)
  }

  /** Whether it may still reach this position, and has not yet. */
  #isAhead(position: LogPlace): boolean {
    return this.#state !== 'former' && this.#log.isAfterEnd(position)
  }
}
