import type { Accepted, Position } from '../../ports/broker.js'
import { decodeEnvelope, sourceBytes } from '../remote/envelope.js'
import type { LinkEvents, LinkMessage, LogFollower, LogPlace } from '../remote/link.js'
import type { RedisLog } from './log.js'
import { decodeLogBatch, envelopesOf, type LogBatch } from './log-batches.js'
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

/** A message that was stored before under its id, at a place that this node has not come to yet. */
interface HeldDuplicate {
  readonly sequence: number
  readonly accepted: Accepted
  readonly offset: number
}

/** Entries of a page, which is to have about so many bytes. */
const FIRST_PAGE_COUNT = 16
const MAX_PAGE_COUNT = 1_000
const PAGE_BYTES = 1_048_576
/** What comes live while pages are read waits in this much; when it is more, there will be more pages instead. */
const MAX_WAITING_BYTES = 8_388_608

/** An entry of the stream, as XRANGE gives it: id, then fields and values. */
type Entry = readonly [id: Buffer, fields: readonly Buffer[]]

/**
 * A link's part in the log: appends to it, and follows the stream up to its end, page by page, then the channel. The channel is subscribed to first, so that the end of
 * the one and the beginning of the other overlap.
 */
export class LogLink {
  readonly #context: LogLinkContext
  readonly #channel: Buffer
  #follower: LogFollower | undefined
  #calls: LogCalls | undefined
  #epoch = ''
  /** Of the last message, or the place before the next. */
  #offset = 0
  #isLive = false
  #held: HeldDuplicate[] = []
  #waiting: LogBatch[] = []
  #waitingBytes = 0

  constructor(context: LogLinkContext) {
    this.#context = context
    this.#channel = Buffer.from(context.log.channel)
  }

  /** As {@link Link.follow}. */
  async follow(after: LogPlace | undefined, follower: LogFollower): Promise<void> {
    const { log, pair, kind } = this.#context
    const [run] = await Promise.all([
      this.#askForRun(),
      pair.subscribe(kind, log.channel),
      ...[appendScript, openScript].map(({ source }) => pair.ask((redis) => redis.script('LOAD', source))),
    ])
    const { start, isContinued, endOffset } = await this.#open(run, after)
    this.#epoch = start.epoch
    this.#offset = start.offset
    this.#follower = follower
    follower.begins(start, isContinued)
    // The seam is where nothing is missing between the last page and what waits.
    do {
      await this.#readPages()
      this.#offset = Math.max(this.#offset, endOffset)
    } while (!this.#takeWaiting())
    this.#isLive = true
    this.#calls = log.calls(run)
  }

  /** Sends a message into the log; once it is followed. */
  append(message: LinkMessage): void {
    if (this.#calls !== undefined) this.#context.pair.publisher.append(this.#calls, message)
  }

  /**
   * What the script has answered is told when this node has the message too, so that who was told of its place can read from there. A message
   * that it has stored is confirmed by coming.
   */
  accepted(sequence: number, accepted: Accepted): void {
    const { isDuplicate, position: { epoch, offset } = { epoch: '', offset: 0 } } = accepted
    const isThisLog = epoch === this.#epoch
    const isHere = isThisLog && offset <= this.#offset
    if (isHere || (isDuplicate && !isThisLog)) this.#context.events.confirmed(sequence, false, accepted)
    else if (isDuplicate) this.#held.push({ sequence, accepted, offset })
  }

  /** Whether a message is of the log. */
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
    this.#isLive = false
    this.#context.pair.lose(broken)
  }

  async #askForRun(): Promise<string> {
    try {
      const info = await this.#context.pair.ask((redis) => redis.info('server'))
      return /^run_id:(\w+)/m.exec(info)?.[1] ?? ''
    } catch (error) {
      // Not everybody may ask: a lost end is then found by the messages alone.
      if (/\bNOPERM\b/.test(String(error))) return ''
      throw error
    }
  }

  async #open(run: string, after: LogPlace | undefined) {
    const { log, pair } = this.#context
    const source = after?.source === undefined ? '' : sourceBytes(after.source)
    const place = [after?.epoch ?? '', String(after?.offset ?? 0), source]
    const reply = await pair.ask((redis) =>
      redis.evalsha(openScript.sha, log.keys.length, ...log.keys, ...log.leadArguments(run), ...place),
    )
    const [epoch, offset, isContinued, endOffset] = Array.isArray(reply) ? reply.map(String) : []
    if (epoch === undefined) throw new Error('the log answers otherwise than expected')
    const start: Position = { epoch, offset: Number(offset) }
    return { start, isContinued: isContinued === '1', endOffset: Number(endOffset) }
  }

  /** Up to the end. */
  async #readPages(): Promise<void> {
    const { log, pair } = this.#context
    let count = FIRST_PAGE_COUNT
    for (let isEnd = false; !isEnd; ) {
      const from = `${this.#offset + 1}`
      const entries: readonly Entry[] = await pair.ask((redis) =>
        redis.xrangeBuffer(log.stream, from, '+', 'COUNT', count),
      )
      const [first] = entries
      if (first !== undefined && offsetOf(first) > this.#offset + 1) await this.#assertHeld()
      let byteCount = 0
      for (const entry of entries) {
        const [id, [, envelope = Buffer.alloc(0)]] = entry
        byteCount += envelope.length
        const timeMs = Number(id.toString('latin1', id.indexOf('-') + 1))
        this.#deliver(offsetOf(entry), timeMs, envelope)
      }
      isEnd = entries.length < count
      const average = Math.max(1, byteCount / entries.length)
      count = Math.min(MAX_PAGE_COUNT, Math.max(FIRST_PAGE_COUNT, Math.floor(PAGE_BYTES / average)))
    }
  }

  /** Offsets leap when the server has begun another life; else what is missing was dropped while it was read. */
  async #assertHeld(): Promise<void> {
    const { log, pair } = this.#context
    const [oldest]: readonly Entry[] = await pair.ask((redis) => redis.xrangeBuffer(log.stream, '-', '+', 'COUNT', 1))
    if (oldest === undefined || offsetOf(oldest) > this.#offset + 1)
      throw new Error('the log drops more than is read of it')
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

  /** Whether what waits goes on where the pages have ended; else there is more to be read. */
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

  /** Returns why the log cannot be followed any further over this link, if so. */
  #takeLive(batch: LogBatch): Error | undefined {
    const { epoch, firstOffset, timeMs } = batch
    // Also when it was the one before: which of them is over is found out by asking anew.
    if (epoch !== this.#epoch) return new Error('another epoch of the log has begun')
    let offset = firstOffset
    for (const envelope of envelopesOf(batch)) {
      if (offset > this.#offset + 1) return new Error(`the log has a hole before ${offset}`)
      // Read with the pages already.
      if (offset > this.#offset) this.#deliver(offset, timeMs, envelope)
      offset++
    }
    if (this.#held.length > 0) this.#tellHeld()
    return undefined
  }

  #deliver(offset: number, timeMs: number, envelope: Buffer): void {
    this.#offset = offset
    const delivery = decodeEnvelope(undefined, envelope)
    if (delivery === undefined) this.#context.events.malformed(`an entry of the log that is no message, at ${offset}`)
    else this.#follower?.message({ ...delivery, offset, timeMs })
  }

  #tellHeld(): void {
    const held = this.#held
    this.#held = held.filter(({ offset }) => offset > this.#offset)
    for (const { sequence, accepted, offset } of held)
      if (offset <= this.#offset) this.#context.events.confirmed(sequence, false, accepted)
  }
}

function offsetOf([id]: Entry): number {
  return Number.parseInt(id.toString('latin1'), 10)
}
