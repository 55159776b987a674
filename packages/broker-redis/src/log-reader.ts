import {
  decodeEnvelope,
  fingerprintOfPlace,
  fingerprintOfSource,
  type LogFollower,
  LogRestart,
  logged,
} from 'webmq-server/brokers'
import type { Position } from 'webmq-server/ports'
import type { RedisLog } from './log.js'

/** Consecutive messages of the log, as published on its channel. */
export interface LogBatch {
  readonly epoch: string
  readonly firstOffset: number
  readonly timeMs: number
  /** The messages, as {@link envelopesOf} reads them. */
  readonly bytes: Buffer
}

const NEWLINE = 0x0a
const HEAD = /^(\S+) (\d+) (\d+)$/
const LENGTH_BYTES = 4

/** Reads `<epoch> <first offset> <time>\n` and leaves the rest; `undefined` for any other payload. */
export function decodeLogBatch(payload: Buffer): LogBatch | undefined {
  const headEnd = payload.indexOf(NEWLINE)
  const [, epoch, firstOffset, timeMs] = HEAD.exec(payload.toString('latin1', 0, Math.max(0, headEnd))) ?? []
  if (epoch === undefined) return undefined
  const bytes = payload.subarray(headEnd + 1)
  return { epoch, firstOffset: Number(firstOffset), timeMs: Number(timeMs), bytes }
}

/** The envelopes of a batch, as views of its bytes. One that is cut short is left out. */
export function* envelopesOf({ bytes }: LogBatch): Generator<Buffer> {
  let at = 0
  while (at + LENGTH_BYTES <= bytes.length) {
    const start = at + LENGTH_BYTES
    at = start + bytes.readUInt32BE(at)
    if (at <= bytes.length) yield bytes.subarray(start, at)
  }
}

/** Where a link begins, as the script says. */
export interface LogStart {
  readonly start: Position
  readonly isContinued: boolean
  /** Messages up to this offset are left of earlier epochs. */
  readonly began: number
  readonly term: string
}

/** Entries per page, adjusted so that a page has about `PAGE_BYTES`. */
const FIRST_PAGE_COUNT = 16
const MAX_PAGE_COUNT = 1_000
const PAGE_BYTES = 1_048_576
/** Most bytes of live messages that wait while pages are read. With more, they are dropped and read as pages. */
const MAX_WAITING_BYTES = 8_388_608

/** An entry of the stream, as XRANGE returns it: id, then fields and values. */
type Entry = readonly [id: Buffer, fields: readonly Buffer[]]

/** Reads at most `count` entries of the stream. */
type PageFrom = (from: string, count: number) => Promise<readonly Entry[]>

/** Reads the log once: the stream page by page up to the end, then the channel. */
export class LogReader {
  readonly #pageFrom: PageFrom
  readonly #log: RedisLog
  readonly #follower: LogFollower
  #epoch = ''
  /** Offset of the last message; before the first one, the offset to read after. */
  #offset = 0
  /** The last offset that came by a page, not over the channel. */
  #pagesEnd = 0
  /** All pages are read: messages come over the channel. */
  isLive = false
  isStopped = false
  #waiting: LogBatch[] = []
  #waitingBytes = 0

  constructor(pageFrom: PageFrom, log: RedisLog, follower: LogFollower) {
    this.#pageFrom = pageFrom
    this.#log = log
    this.#follower = follower
  }

  /** Resolves when the reader is live, or stopped. The channel must be subscribed, so that pages and channel overlap. */
  async read({ start, isContinued, began }: LogStart): Promise<void> {
    this.#epoch = start.epoch
    this.#offset = start.offset
    this.#follower.begins(start, isContinued)
    if (!isContinued) this.#follower.began(began)
    // Repeat until nothing is missing between the last page and the waiting messages.
    do await this.#readPages()
    while (!this.isStopped && !this.#takeWaiting())
    this.isLive = !this.isStopped
  }

  stop(): void {
    this.isStopped = true
    this.isLive = false
    this.#clearWaiting()
  }

  /**
   * Takes a message of the channel.
   * @returns an error if the log cannot be followed any further
   */
  take(batch: LogBatch): Error | undefined {
    if (this.isStopped) return undefined
    if (this.isLive) return this.#takeLive(batch)
    this.#wait(batch)
    return undefined
  }

  async #readPages(): Promise<void> {
    let count = FIRST_PAGE_COUNT
    for (let isEnd = false; !isEnd && !this.isStopped; ) {
      const entries = await this.#pageFrom(`${this.#offset + 1}`, count)
      if (this.isStopped) return
      let byteCount = 0
      for (const entry of entries) byteCount += this.#takeEntry(entry)
      this.#pagesEnd = this.#offset
      isEnd = entries.length < count
      const average = Math.max(1, byteCount / entries.length)
      count = Math.min(MAX_PAGE_COUNT, Math.max(FIRST_PAGE_COUNT, Math.floor(PAGE_BYTES / average)))
    }
  }

  /** Returns the bytes of the entry. */
  #takeEntry([id, [, value = Buffer.alloc(0)]]: Entry): number {
    const [offset = 0, timeMs = 0] = id.toString('latin1').split('-').map(Number)
    if (offset > this.#offset + 1) throw new LogRestart('the log is trimmed faster than it is read')
    this.#deliver(offset, timeMs, value)
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
    const { epoch, firstOffset, timeMs } = batch
    // It may be an earlier epoch; the next link asks which one is current.
    if (epoch !== this.#epoch) return new LogRestart('another epoch of the log has begun')
    // A page had it already.
    if (firstOffset <= this.#offset && firstOffset > this.#pagesEnd)
      return new LogRestart(`the log has another message at ${firstOffset}`)
    let offset = firstOffset
    for (const envelope of envelopesOf(batch)) {
      if (offset > this.#offset + 1) return new LogRestart(`the log has a hole before ${offset}`)
      if (offset > this.#offset) this.#deliver(offset, timeMs, envelope)
      offset++
    }
    return undefined
  }

  #deliver(offset: number, timeMs: number, envelope: Buffer): void {
    this.#offset = offset
    this.#log.noteRead(offset, timeMs)
    const follower = this.#follower
    const delivery = decodeEnvelope(undefined, envelope)
    const source = delivery?.source
    // The script for other programs computes it, too: nothing longer.
    const fingerprint = source === undefined ? fingerprintOfPlace(offset, timeMs) : fingerprintOfSource(source, timeMs)
    if (delivery === undefined)
      follower.malformed(offset, fingerprint, `an entry of the log that is no message, at ${offset}`)
    else follower.message(logged(delivery, offset, fingerprint, timeMs))
  }
}
