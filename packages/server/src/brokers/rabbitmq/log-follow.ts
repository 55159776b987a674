import { randomBytes } from 'node:crypto'
import type { Channel } from 'amqplib'
import { deferred } from '../../base/deferred.js'
import type { LogPlace, Position } from '../../ports/broker.js'
import { isReserved } from '../../ports/reserved-keys.js'
import { newEpoch } from '../log/epoch.js'
import { logged } from '../remote/envelope.js'
import { EPHEMERAL_KEY } from '../remote/ephemeral.js'
import type { LinkDelivery, LogFollower, LogSign } from '../remote/link.js'
import { type AmqpConnection, watchChannel } from './connection.js'
import type { RabbitmqLink } from './link.js'
import { firstRecord, LogConsumer, type LogReadOptions, readLog, scanLog } from './log-consumer.js'
import type { LogCursor } from './log-cursor.js'
import { LogEpoch } from './log-epoch.js'
import { declareLog, logQueueOf } from './log-queue.js'
import type { LogRecord } from './log-record.js'
import { EPOCH_RECORD_PROPERTIES, type EpochRecord, encodeEpochRecord } from './log-record.js'
import { RestartSign } from './restart-sign.js'
import { RulesSign } from './rules-sign.js'

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

interface LogStart {
  /** Offset in the queue of the first record to consume. */
  readonly offset: number
  readonly epoch: LogEpoch
  readonly isContinued: boolean
}

/**
 * RabbitMQ writes notes of its own at the beginning of a segment. They take one offset and are not delivered. A loss is
 * larger: whole segments, with their notes and at least a message.
 */
const MAX_HOLE = 1
const NONCE_BYTES = 8

/** What an epoch record says, besides what every one says. */
type EpochStatement = Pick<EpochRecord, 'epoch' | 'candidate' | 'denies' | 'asks'>

/**
 * Follows the log, a stream queue. The position of a message is its offset in the queue plus one, for the queue begins
 * at 0.
 *
 * A queue that was deleted or has lost its end uses offsets again. So a node that comes back first checks that the
 * record it remembers is still where it was (ADR 18).
 */
export class LogFollow implements LogSign {
  readonly #link: RabbitmqLink
  readonly #cursor: LogCursor
  readonly #log: LogReadOptions
  /** For epoch records. */
  readonly #channel: Channel
  readonly sign: RestartSign
  readonly #rules: RulesSign
  /** Epochs that this node has begun: no client has a position from before. */
  readonly #candidates = new Set<string>()
  /** The log is whole, as far as any node knows. */
  #isConfirmed = false
  #state: FollowState = { name: 'scanning' }
  #epoch = new LogEpoch(0)
  #consumer: LogConsumer | undefined
  #follower: LogFollower | undefined
  /** Of the queue: the next that must come; `undefined` if the log begins with whatever comes first. */
  #nextOffset: number | undefined

  /** Declares the log. The exchange must exist. */
  static async open(publishing: AmqpConnection, consuming: AmqpConnection, link: RabbitmqLink): Promise<LogFollow> {
    const { context, history } = link.options
    await declareLog(consuming, context.namespace, history)
    const queue = logQueueOf(context.namespace)
    const channel = await publishing.openChannel()
    const log = { connection: consuming, queue, lost: link.events.lost }
    return new LogFollow(link, log, channel, publishing)
  }

  private constructor(link: RabbitmqLink, log: LogReadOptions, channel: Channel, publishing: AmqpConnection) {
    const { events } = link
    this.#link = link
    this.#cursor = link.options.cursor
    this.#log = log
    this.#channel = channel
    const { context, history } = link.options
    this.sign = new RestartSign(publishing, context.namespace)
    this.#rules = new RulesSign(publishing, context.namespace, history.history)
    watchChannel(channel, events.lost)
    channel.on('return', () => events.lost(new Error('the log is gone')))
  }

  async follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    const { start, untilOffset } = await this.#findStart(after)
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
    await this.#confirm(start.isContinued)
    if (!start.isContinued) this.#record({ epoch: this.#cursor.epoch })
  }

  /**
   * After a restart of RabbitMQ some node must have found what it had read. Otherwise another epoch begins, because the
   * end may be lost.
   */
  async #confirm(isContinued: boolean): Promise<void> {
    const { sign } = this
    const cursor = this.#cursor
    while (!this.#isStopped()) {
      const { epoch } = cursor
      if (this.#candidates.has(epoch)) await this.#rules.set(epoch)
      if (isContinued || this.#candidates.has(epoch)) await sign.set(epoch)
      else if (!(await sign.isSet(epoch))) {
        this.#record({ asks: epoch })
        if (!(await sign.isSetInTime(epoch))) {
          await this.#beginAnother(epoch)
          continue
        }
      }
      this.#isConfirmed = true
      return
    }
  }

  async #beginAnother(epoch: string): Promise<void> {
    const untilOffset = await this.#recordAndLocate({ candidate: this.#candidate(), denies: epoch })
    const continued = this.#continueTo(untilOffset)
    if (this.#cursor.seenOffset < untilOffset) await continued
    await this.sign.remove(epoch)
  }

  isSigned(): Promise<boolean> {
    return this.#rules.isSet(this.#cursor.epoch)
  }

  unsign(): Promise<void> {
    return this.#rules.remove()
  }

  async begin(): Promise<void> {
    await this.#beginAnother(this.#cursor.epoch)
    await this.#confirm(false)
  }

  /** Resolves when everything up to this record has arrived. */
  #continueTo(untilOffset: number): Promise<void> {
    const continued = deferred()
    this.#state = { name: 'continuing', untilOffset, done: () => continued.resolve() }
    return continued.promise
  }

  #candidate(): string {
    const candidate = newEpoch()
    this.#candidates.add(candidate)
    return candidate
  }

  /** As {@link Link.logEnd}. Writes an epoch record: AMQP has no other way to find the end of a stream. */
  async end(): Promise<LogPlace> {
    const offset = await this.#recordAndLocate({ candidate: newEpoch() })
    return { epoch: this.#cursor.epoch, offset: offset + 1 }
  }

  /** Takes nothing more. */
  stop(): void {
    this.#state = { name: 'stopped' }
    this.#consumer?.stop()
  }

  /** Writes an epoch record, without waiting for it; returns its nonce. */
  #record(statement: EpochStatement): string {
    const nonce = randomBytes(NONCE_BYTES).toString('hex')
    const record = encodeEpochRecord({ nonce, timeMs: Date.now(), ...statement })
    this.#channel.sendToQueue(this.#log.queue, record, { ...EPOCH_RECORD_PROPERTIES, mandatory: true })
    return nonce
  }

  /** Writes one; resolves to its offset in the queue. What the broker accepted before the call stands before it. */
  #recordAndLocate(statement: EpochStatement): Promise<number> {
    let nonce: string | undefined
    const find = ({ epochRecord, offset }: LogRecord) =>
      nonce !== undefined && epochRecord?.nonce === nonce ? offset : undefined
    return readLog(this.#log, 'next', find, () => {
      nonce = this.#record(statement)
    })
  }

  #isStopped(): boolean {
    return this.#state.name === 'stopped'
  }

  /** Writes an epoch record; everything that was logged before the call stands before it. */
  async #findStart(after: Position | undefined): Promise<{ start: LogStart; untilOffset: number }> {
    const cursor = this.#cursor
    const untilOffset = await this.#recordAndLocate({ candidate: this.#candidate() })
    const state = after === undefined ? 'unknown' : await this.#compare(after, untilOffset)
    if (state === 'same') {
      const offset = cursor.seenOffset + 1
      const epoch = new LogEpoch(offset, cursor.epoch)
      return { start: { offset, epoch, isContinued: true }, untilOffset }
    }
    if (state === 'unknown') return { start: await this.#begin(untilOffset, false), untilOffset }
    const denied = await this.#recordAndLocate({ candidate: this.#candidate(), denies: cursor.epoch })
    await this.sign.remove(cursor.epoch)
    return { start: await this.#begin(denied, true), untilOffset: denied }
  }

  async #begin(toOffset: number, isThorough: boolean): Promise<LogStart> {
    const { epoch, timeMs } = await scanLog(this.#log, toOffset, isThorough)
    const offset = epoch.sinceOffset
    this.#cursor.timeMs = timeMs
    return { offset, epoch: new LogEpoch(offset, epoch.name), isContinued: false }
  }

  /** Compares the log with the cursor: the same log, another one, or unknown because the anchor has aged out. */
  async #compare(after: Position, untilOffset: number): Promise<'same' | 'unknown' | 'another'> {
    const cursor = this.#cursor
    const { anchorOffset, epoch, seenOffset } = cursor
    if (anchorOffset === undefined || epoch !== after.epoch) return 'unknown'
    if (untilOffset <= seenOffset) return 'another'
    const { offset, delivery, epochRecord } = await firstRecord(this.#log, anchorOffset)
    if (offset > anchorOffset) return 'unknown'
    return cursor.isAnchor(delivery?.source, epochRecord?.nonce) ? 'same' : 'another'
  }

  #take(record: LogRecord): void {
    if (this.#isStopped()) return
    this.#link.alive()
    const { offset, fingerprint, epochRecord, delivery } = record
    if (!this.#isNext(offset)) return
    if (epochRecord !== undefined) {
      this.#epoch.recorded(epochRecord, offset)
      if (this.#epoch.name !== this.#cursor.epoch) this.#beginAt(offset + 1, fingerprint)
      this.#cursor.sawEpochRecord(offset, epochRecord.nonce)
      if (this.#isConfirmed && epochRecord.asks === this.#cursor.epoch)
        this.sign.set(epochRecord.asks).catch(this.#log.lost)
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
    const detail = 'not sent to the exchange, or with a key or a text that is not valid'
    this.#cursor.saw(offset)
    const isLogged = malformedKey !== undefined && this.#link.logged?.ruleOf(malformedKey) !== undefined
    if (isLogged) this.#follower?.malformed(offset + 1, fingerprint, detail, malformedKey)
    else this.#link.events.malformed(detail)
  }

  #deliver(delivery: LinkDelivery, { offset, fingerprint, timeMs = this.#estimatedTimeMs() }: LogRecord): void {
    const { key, source } = delivery
    if (source === undefined) this.#cursor.saw(offset)
    else this.#cursor.sawMessage(offset, source)
    if (this.#link.logged?.ruleOf(key) === undefined) this.#passOn(delivery)
    else this.#follower?.message(logged(delivery, offset + 1, fingerprint, timeMs))
  }

  /**
   * A message that is not logged but bound to the log's queue. Listeners whose pattern the log covers get reserved
   * keys only here. Other keys also come by the node's queue: bindings of former rules stay until somebody unbinds
   * them. An ephemeral message came by the node's queue, or is too late.
   */
  #passOn(delivery: LinkDelivery): void {
    if (isReserved(delivery.key) && delivery.key !== EPHEMERAL_KEY) this.#link.events.deliver(delivery)
    else this.#link.events.surplus()
  }

  /** Begins with the record that comes first, and finds holes. */
  #isNext(offset: number): boolean {
    if (this.#nextOffset === undefined) this.#beginAt(offset, 0)
    else if (offset > this.#nextOffset + MAX_HOLE) {
      // Without the anchor the next link begins anew, instead of finding the same hole.
      this.#cursor.forget()
      this.#link.events.lost(new Error(`the log no longer has what stood from ${this.#nextOffset} to ${offset - 1}`))
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
