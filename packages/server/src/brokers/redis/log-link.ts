import { setTimeout } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'
import type { Accepted, Position } from '../../ports/broker.js'
import { decodeEnvelope, sourceBytes } from '../remote/envelope.js'
import type { LinkEvents, LinkMessage, LogFollower, LogPosition } from '../remote/link.js'
import type { RedisLog } from './log.js'
import { decodeFence, decodeLogBatch, envelopesOf, type LogBatch, type LogFence } from './log-batches.js'
import type { LogCalls } from './log-call.js'
import { appendScript, openScript } from './log-scripts.js'
import type { RedisPair } from './pair.js'
import type { ReceivedMessage } from './subscriber.js'

/** What a {@link LogLink} works with. */
export interface LogLinkContext {
  readonly log: RedisLog
  readonly pair: RedisPair
  readonly kind: 'channel' | 'shard'
  /** As in {@link LinkEvents}. */
  readonly events: Pick<LinkEvents, 'confirmed' | 'malformed'>
}

/** A message whose id the log already had, at an offset that this node has not read yet. */
interface PendingDuplicate {
  readonly sequence: number
  readonly accepted: Accepted
  readonly offset: number
}

/** Entries per page, adjusted so that a page has about `PAGE_BYTES`. */
const FIRST_PAGE_COUNT = 16
const MAX_PAGE_COUNT = 1_000
const PAGE_BYTES = 1_048_576
/** Most bytes of live messages that wait while pages are read. With more, they are dropped and read as pages. */
const MAX_WAITING_BYTES = 8_388_608

/** Time that a node gives others to say that the log has its end, when it cannot say so itself. */
const MAX_VOUCH_MS = 1_000
const VOUCH_POLL_MS = 50
const FENCE_FIELD = 'f'

/** Where a link begins, as the script says. */
interface LogStart {
  readonly start: Position
  readonly isContinued: boolean
  readonly reign: string
}

/** An entry of the stream, as XRANGE returns it: id, then fields and values. */
type Entry = readonly [id: Buffer, fields: readonly Buffer[]]

/**
 * The log over one link. It appends messages. It follows the stream page by page up to the end, then the channel. It
 * subscribes to the channel first, so that the pages and the live messages overlap.
 */
export class LogLink {
  readonly #context: LogLinkContext
  readonly #channel: Buffer
  #follower: LogFollower | undefined
  #calls: LogCalls | undefined
  #epoch = ''
  /** Offset of the last message; before the first one, the offset to read after. */
  #offset = 0
  /** The last offset that came by a page, not over the channel. */
  #pagesEnd = 0
  #isLive = false
  #pendingDuplicates: PendingDuplicate[] = []
  #waiting: LogBatch[] = []
  #waitingBytes = 0

  constructor(context: LogLinkContext) {
    this.#context = context
    this.#channel = Buffer.from(context.log.channel)
  }

  /** As {@link Link.follow}. */
  async follow(after: LogPosition | undefined, follower: LogFollower): Promise<void> {
    const { log, pair, kind } = this.#context
    await Promise.all([
      this.#assertRunId(),
      pair.subscribe(kind, log.channel),
      ...[appendScript, openScript].map(({ source }) => pair.ask((redis) => redis.script('LOAD', source))),
    ])
    const { start, isContinued, reign } = await this.#open(after)
    this.#epoch = start.epoch
    this.#offset = start.offset
    this.#follower = follower
    follower.begins(start, isContinued)
    // Repeat until nothing is missing between the last page and the waiting messages.
    do await this.#readPages()
    while (!this.#takeWaiting())
    this.#isLive = true
    this.#calls = log.calls(reign)
  }

  /** The link is over. */
  stop(): void {
    if (this.#isLive) this.#context.log.followedUntilMs = performance.now()
    this.#isLive = false
  }

  /** As {@link Link.logEnd}. */
  async end(): Promise<Position> {
    const { log, pair } = this.#context
    const [epoch, end] = await pair.ask((redis) => redis.hmget(log.state, 'epoch', 'end'))
    return { epoch: epoch ?? '', offset: Number(end ?? 0) }
  }

  /** Appends a message to the log. Only after `follow`. */
  append(message: LinkMessage): void {
    if (this.#calls !== undefined) this.#context.pair.publisher.append(this.#calls, message)
  }

  /**
   * Handles the script's answer. The message is confirmed when this node has read it, so that the publisher can read
   * from its position. A new message is confirmed when it arrives on the channel.
   */
  accepted(sequence: number, accepted: Accepted): void {
    const { isDuplicate, position: { epoch, offset } = { epoch: '', offset: 0 } } = accepted
    const isThisLog = epoch === this.#epoch
    const isHere = isThisLog && offset <= this.#offset
    if (isHere || (isDuplicate && !isThisLog)) this.#context.events.confirmed(sequence, false, accepted)
    else if (isDuplicate) this.#pendingDuplicates.push({ sequence, accepted, offset })
  }

  /** Takes a message of the log's channel; returns `false` for any other message. */
  take({ channel, payload }: ReceivedMessage): boolean {
    if (channel.length !== this.#channel.length || !channel.equals(this.#channel)) return false
    const batch = decodeLogBatch(payload)
    if (batch === undefined) this.#context.events.malformed('no messages of the log, to its channel')
    else if (this.#isLive) this.#takeNow(batch)
    else this.#wait(batch)
    return true
  }

  #takeNow(batch: LogBatch): void {
    const broken = this.#takeLive(batch)
    if (broken === undefined) return
    this.stop()
    this.#context.pair.lose(broken)
  }

  /**
   * Without it, nobody could see that the log may have lost its end.
   * @throws {WebMQError} `E_BROKER_REFUSED`
   */
  async #assertRunId(): Promise<void> {
    const info = await this.#context.pair.ask((redis) => redis.info('server'))
    if (/^run_id:\w+/m.test(info)) return
    const detail = 'a Redis whose INFO has no run_id cannot hold a log: a restart would go unnoticed'
    throw new WebMQError('E_BROKER_REFUSED', { detail })
  }

  /** Asks where to begin, until this node or another has put up the fence of this reign. */
  async #open(after: LogPosition | undefined): Promise<LogStart> {
    const { log, pair } = this.#context
    const source = after?.source === undefined ? '' : sourceBytes(after.source)
    const position = [after?.epoch ?? '', String(after?.offset ?? 0), source]
    const lead = [...log.keys, ...log.leadArguments, ...position]
    const { publishScript, followedUntilMs } = log
    const awayMs = () => (followedUntilMs === undefined ? '' : Math.ceil(performance.now() - followedUntilMs))
    for (let leftMs = MAX_VOUCH_MS; ; leftMs -= VOUCH_POLL_MS) {
      const isLastCall = leftMs <= 0 ? '1' : '0'
      const reply = await pair.ask((redis) =>
        redis.evalsha(openScript.sha, log.keys.length, ...lead, awayMs(), isLastCall, publishScript),
      )
      const [epoch, offset, isContinued, reign] = Array.isArray(reply) ? reply.map(String) : []
      if (epoch !== undefined && reign !== undefined)
        return { start: { epoch, offset: Number(offset) }, isContinued: isContinued === '1', reign }
      if (isLastCall === '1') throw new Error('the log answers otherwise than expected')
      await setTimeout(VOUCH_POLL_MS)
    }
  }

  /** Reads up to the end of the stream. */
  async #readPages(): Promise<void> {
    const { log, pair } = this.#context
    let count = FIRST_PAGE_COUNT
    for (let isEnd = false; !isEnd; ) {
      const from = `${this.#offset + 1}`
      const entries: readonly Entry[] = await pair.ask((redis) =>
        redis.xrangeBuffer(log.stream, from, '+', 'COUNT', count),
      )
      let byteCount = 0
      for (const entry of entries) byteCount += this.#takeEntry(entry)
      this.#pagesEnd = this.#offset
      isEnd = entries.length < count
      const average = Math.max(1, byteCount / entries.length)
      count = Math.min(MAX_PAGE_COUNT, Math.max(FIRST_PAGE_COUNT, Math.floor(PAGE_BYTES / average)))
    }
  }

  /** Returns the bytes of the entry. */
  #takeEntry([id, [field, value = Buffer.alloc(0)]]: Entry): number {
    const [offset = 0, timeMs = 0] = id.toString('latin1').split('-').map(Number)
    const fence = field?.toString() === FENCE_FIELD ? decodeFence(value.toString('latin1')) : undefined
    if ((fence?.after ?? offset - 1) > this.#offset) throw new Error('the log is trimmed faster than it is read')
    if (fence === undefined) this.#deliver(offset, timeMs, value)
    else this.#fenced(offset, timeMs, fence)
    return value.length
  }

  #wait(batch: LogBatch): void {
    if (this.#waitingBytes + batch.bytes.length > MAX_WAITING_BYTES) this.#clearWaiting()
    // A copy: a view would hold the whole chunk that was read from the socket.
    this.#waiting.push({ ...batch, bytes: Buffer.from(batch.bytes) })
    this.#waitingBytes += batch.bytes.length
  }

  #clearWaiting(): void {
    this.#waiting = []
    this.#waitingBytes = 0
  }

  /** Takes the waiting messages. Returns `false` if there are messages to read before them. */
  #takeWaiting(): boolean {
    const waiting = this.#waiting
    this.#clearWaiting()
    for (const batch of waiting) {
      if (batch.epoch === this.#epoch && batch.firstOffset > this.#offset + 1) return false
      const broken = this.#takeLive(batch)
      if (broken !== undefined) throw broken
    }
    return true
  }

  /** Returns an error if the log cannot be followed any further over this link. */
  #takeLive(batch: LogBatch): Error | undefined {
    const { epoch, firstOffset, timeMs, fence } = batch
    // It may be an earlier epoch; the next link asks which one is current.
    if (epoch !== this.#epoch) return new Error('another epoch of the log has begun')
    // A page had it already.
    const isOld = firstOffset <= this.#offset
    if (isOld && firstOffset > this.#pagesEnd) return new Error(`the log has another message at ${firstOffset}`)
    if (fence !== undefined) {
      if (fence.after > this.#offset) return new Error(`the log has a hole before ${firstOffset}`)
      if (!isOld) this.#fenced(firstOffset, timeMs, fence)
      return undefined
    }
    let offset = firstOffset
    for (const envelope of envelopesOf(batch)) {
      if (offset > this.#offset + 1) return new Error(`the log has a hole before ${offset}`)
      if (offset > this.#offset) this.#deliver(offset, timeMs, envelope)
      offset++
    }
    if (this.#pendingDuplicates.length > 0) this.#confirmDuplicates()
    return undefined
  }

  #deliver(offset: number, timeMs: number, envelope: Buffer): void {
    this.#offset = offset
    const delivery = decodeEnvelope(undefined, envelope)
    if (delivery === undefined)
      this.#follower?.malformed(offset, `an entry of the log that is no message, at ${offset}`)
    else this.#follower?.message({ ...delivery, offset, timeMs })
  }

  #fenced(offset: number, timeMs: number, { isComplete }: LogFence): void {
    this.#offset = offset
    this.#follower?.fenced({ offset, timeMs, isComplete })
  }

  #confirmDuplicates(): void {
    const duplicates = this.#pendingDuplicates
    this.#pendingDuplicates = duplicates.filter(({ offset }) => offset > this.#offset)
    for (const { sequence, accepted, offset } of duplicates)
      if (offset <= this.#offset) this.#context.events.confirmed(sequence, false, accepted)
  }
}
