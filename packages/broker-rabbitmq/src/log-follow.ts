import { setTimeout as sleep } from 'node:timers/promises'
import {
  deferred,
  EPHEMERAL_KEY,
  isReserved,
  type LinkDelivery,
  type LinkLog,
  type Liveness,
  type LogFollower,
  LogRestart,
  logged,
} from 'webmq-server/brokers'
import type { LogPlace, Position } from 'webmq-server/ports'
import { type AmqpConnection, type RabbitmqLinkOptions, watchChannel } from './connection.js'
import { EpochWriter } from './epoch-writer.js'
import { LogConsumer, type LogReadOptions } from './log-consumer.js'
import type { LogCursor } from './log-cursor.js'
import { LogEpoch } from './log-epoch.js'
import { RestartMark, RulesMark } from './log-marks.js'
import { declareLog, logQueueOf } from './log-queue.js'
import type { LogRecord } from './log-record.js'
import { findStart } from './log-start.js'

/**
 * - `scanning`: looks for the epoch and for where to begin; nothing is consumed yet.
 * - `continuing`: consumes the records that existed when `follow` was called, up to `untilOffset`.
 * - `following`: has all of these; records are live.
 */
type FollowState =
  | { readonly name: 'scanning' }
  | { readonly name: 'continuing'; readonly untilOffset: number; readonly done: () => void }
  | { readonly name: 'following' }
  | { readonly name: 'stopped' }

/**
 * RabbitMQ writes notes of its own at the beginning of a segment. They take one offset and are not delivered. A loss is
 * larger: whole segments, with their notes and at least a message.
 */
const MAX_HOLE = 1

/** Readers without the grant to publish may ask for the end, which writes a record of some 150 bytes to the log. */
const END_PAUSE_MS = 100

/**
 * Follows the log, a stream queue. The position of a message is its offset in the queue plus one, for the queue begins
 * at 0.
 *
 * A queue that was deleted or has lost its end uses offsets again. So a node that comes back first checks that the
 * record it remembers is still where it was (ADR 18).
 */
export class LogFollow implements LinkLog {
  readonly #options: RabbitmqLinkOptions
  readonly #liveness: Liveness
  readonly #cursor: LogCursor
  readonly #log: LogReadOptions
  readonly #records: EpochWriter
  readonly #mark: RestartMark
  readonly #rules: RulesMark
  /** Not marked, as far as this node knows; another one may have begun the next epoch since. */
  #askedEpoch = ''
  /** The log is whole, as far as any node knows. */
  #isConfirmed = false
  #state: FollowState = { name: 'scanning' }
  #epoch = new LogEpoch(0)
  /** When the end was asked for last, by `performance.now()`. */
  #lastEndMs = Number.NEGATIVE_INFINITY
  #consumer: LogConsumer | undefined
  #follower: LogFollower | undefined
  /** Of the queue: the next that must come; `undefined` if the log begins with whatever comes first. */
  #nextOffset: number | undefined

  /** Declares the log. The exchange must exist. @param liveness Of `consuming`. */
  static async open(
    publishing: AmqpConnection,
    consuming: AmqpConnection,
    options: RabbitmqLinkOptions,
    liveness: Liveness,
  ): Promise<LogFollow> {
    const { context, events, history } = options
    await declareLog(consuming, context.namespace, history)
    const queue = logQueueOf(context.namespace)
    const channel = await publishing.model.createChannel()
    const log = { connection: consuming, queue, lost: events.lost }
    watchChannel(channel, events.lost)
    channel.on('return', () => events.lost(new LogRestart('the log is gone')))
    return new LogFollow(options, liveness, log, new EpochWriter(log, channel), publishing)
  }

  private constructor(
    options: RabbitmqLinkOptions,
    liveness: Liveness,
    log: LogReadOptions,
    records: EpochWriter,
    publishing: AmqpConnection,
  ) {
    this.#options = options
    this.#liveness = liveness
    this.#cursor = options.cursor
    this.#log = log
    this.#records = records
    const { context, history } = options
    this.#mark = new RestartMark(publishing, context.namespace)
    this.#rules = new RulesMark(publishing, context.namespace, history.history)
  }

  async follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    const { start, untilOffset } = await findStart(this.#log, this.#records, this.#mark, this.#cursor, after)
    if (this.#isStopped()) return
    this.#follower = follower
    this.#epoch = start.epoch
    if (after !== undefined && start.isContinued) {
      this.#nextOffset = start.offset
      follower.begins(after, true)
    }
    const continued = this.#continueTo(untilOffset)
    this.#consumer = await LogConsumer.open(this.#log.connection, {
      queue: this.#log.queue,
      from: start.offset,
      take: (record) => this.#take(record),
      lost: this.#log.lost,
    })
    await continued
    await this.#confirm(start.isContinued && this.#cursor.isConfirmed)
    if (!start.isContinued) this.#records.write({ epoch: this.#cursor.epoch })
  }

  /**
   * After a restart of RabbitMQ some node must have found what it had read. Otherwise another epoch begins, because the
   * end may be lost.
   */
  async #confirm(isKnown: boolean): Promise<void> {
    const mark = this.#mark
    const records = this.#records
    const cursor = this.#cursor
    cursor.isConfirmed = isKnown
    while (!this.#isStopped()) {
      const { epoch } = cursor
      if (records.candidates.has(epoch)) await this.#rules.set(epoch)
      if (isKnown || records.candidates.has(epoch)) await mark.set(epoch)
      else if (!(await mark.isSet(epoch))) {
        records.write({ asks: epoch })
        if (!(await mark.isSetInTime(epoch))) {
          await this.#beginAnother(epoch)
          continue
        }
      }
      this.#isConfirmed = true
      cursor.isConfirmed = true
      return
    }
  }

  async #beginAnother(epoch: string): Promise<void> {
    const untilOffset = await this.#records.locate(epoch)
    const continued = this.#continueTo(untilOffset)
    if (this.#cursor.seenOffset < untilOffset) await continued
    await this.#mark.remove(epoch)
  }

  isMarked(): Promise<boolean> {
    this.#askedEpoch = this.#cursor.epoch
    return this.#rules.isSet(this.#askedEpoch)
  }

  unmark(): Promise<void> {
    return this.#rules.remove()
  }

  async begin(): Promise<void> {
    await this.#beginAnother(this.#askedEpoch)
    await this.#confirm(false)
  }

  /** Resolves when everything up to this record has arrived. */
  #continueTo(untilOffset: number): Promise<void> {
    const continued = deferred()
    this.#state = { name: 'continuing', untilOffset, done: () => continued.resolve() }
    return continued.promise
  }

  /** As {@link LinkLog.end}. Writes an epoch record, though not too often: AMQP has no other way to find the end of a stream. */
  async end(): Promise<LogPlace> {
    const pauseMs = this.#lastEndMs + END_PAUSE_MS - performance.now()
    if (pauseMs > 0) await sleep(pauseMs)
    this.#lastEndMs = performance.now()
    const offset = await this.#records.locate(undefined, false)
    return { epoch: this.#cursor.epoch, offset: offset + 1 }
  }

  /** AMQP does not tell how many replicas a stream has. An address of several servers is taken for that of a cluster. */
  async risk(): Promise<string | undefined> {
    const risks: string[] = []
    if (this.#options.address.hosts.length === 1)
      risks.push(
        `the address names one server: unless the stream ${this.#log.queue} has replicas on others, a machine that fails loses what RabbitMQ has not written to its disk`,
      )
    const { refusal } = this.#mark
    if (refusal !== undefined) risks.push(`no restart of RabbitMQ is seen that no node outlives: ${refusal}`)
    return risks.length === 0 ? undefined : risks.join('; ')
  }

  stop(): void {
    this.#state = { name: 'stopped' }
    this.#consumer?.stop()
  }

  #isStopped(): boolean {
    return this.#state.name === 'stopped'
  }

  #take(record: LogRecord): void {
    if (this.#isStopped()) return
    this.#liveness.alive()
    const { offset, fingerprint, epochRecord, delivery } = record
    if (!this.#isNext(offset)) return
    if (epochRecord !== undefined) {
      this.#epoch.recorded(epochRecord, offset)
      if (this.#epoch.name !== this.#cursor.epoch) this.#beginAt(offset + 1, fingerprint)
      this.#cursor.saw(offset, epochRecord.nonce)
      if (this.#isConfirmed && epochRecord.asks === this.#cursor.epoch)
        this.#mark.set(epochRecord.asks).catch(this.#log.lost)
    } else if (delivery !== undefined) this.#deliver(delivery, record)
    else this.#refuse(record)
    // Unless it was a message.
    this.#follower?.skipped(offset + 1, fingerprint)
    if (record.timeMs !== undefined) this.#cursor.timeMs = record.timeMs
    if (this.#state.name === 'continuing' && offset >= this.#state.untilOffset) {
      this.#state.done()
      this.#state = { name: 'following' }
    }
  }

  #refuse({ offset, fingerprint, malformedKey }: LogRecord): void {
    const detail = 'not sent to the exchange, or with a key, a text or attributes that are not valid'
    this.#cursor.saw(offset)
    const isLogged = malformedKey !== undefined && this.#options.history.history.ruleOf(malformedKey) !== undefined
    if (isLogged) this.#follower?.malformed(offset + 1, fingerprint, detail, malformedKey)
    else if (malformedKey === undefined || isForStreamAlone(malformedKey)) this.#options.events.malformed(detail)
    else this.#options.events.surplus()
  }

  #deliver(delivery: LinkDelivery, { offset, fingerprint, timeMs = this.#estimatedTimeMs() }: LogRecord): void {
    const { key, source } = delivery
    this.#cursor.saw(offset, source)
    if (this.#options.history.history.ruleOf(key) === undefined) this.#passOn(delivery)
    else this.#follower?.message(logged(delivery, offset + 1, fingerprint, timeMs))
  }

  /**
   * A message that is not logged but bound to the log's queue. Listeners whose pattern the log covers get reserved
   * keys only here. Other keys also come by the node's queue: bindings of former rules stay until somebody unbinds
   * them.
   */
  #passOn(delivery: LinkDelivery): void {
    if (isForStreamAlone(delivery.key)) this.#options.events.deliver(delivery)
    else this.#options.events.surplus()
  }

  /** Begins with the record that comes first, and finds holes. */
  #isNext(offset: number): boolean {
    if (this.#nextOffset === undefined) this.#beginAt(offset, 0)
    else if (offset > this.#nextOffset + MAX_HOLE) {
      // Without the anchor the next link begins anew, instead of finding the same hole.
      this.#cursor.forget()
      this.#options.events.lost(
        new LogRestart(`the log no longer has what stood from ${this.#nextOffset} to ${offset - 1}`),
      )
      return false
    }
    this.#nextOffset = offset + 1
    return true
  }

  /** @param fingerprint Of the record before it; 0: unknown. */
  #beginAt(nextOffset: number, fingerprint: number): void {
    const epoch = this.#epoch.name ?? ''
    this.#cursor.begin(epoch, nextOffset)
    this.#follower?.begins({ epoch, offset: nextOffset, fingerprint }, false)
  }

  /** For a message that tells no time: now if it is live, else the time of the last one that did. */
  #estimatedTimeMs(): number {
    return this.#state.name === 'following' ? Date.now() : this.#cursor.timeMs
  }
}

/** An ephemeral message came by the node's queue, or is too late. */
function isForStreamAlone(key: string): boolean {
  return isReserved(key) && key !== EPHEMERAL_KEY
}
