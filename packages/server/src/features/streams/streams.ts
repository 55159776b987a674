import { formatStreamPlace, refusalOf, WebMQError, type WriteKind } from 'webmq-client/protocol'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import type { Logger } from '../../kernel/base/logger.js'
import { isPromise, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import { assertMayPublish } from '../../kernel/identity/access.js'
import { isTrusted } from '../../kernel/identity/actor.js'
import type { Accepted, Broker, Position, Reader, ReadResult } from '../../kernel/ports/broker.js'
import { isAfter } from '../../kernel/ports/position.js'
import { assertKeyWords } from '../../kernel/ports/word-limits.js'
import { type Author, assertRoom } from '../../kernel/publishing/author.js'
import { type Draft, PENDING_OVERHEAD_BYTES } from '../../kernel/publishing/draft.js'
import type { Publisher } from '../../kernel/publishing/publisher.js'
import type { StreamFacts } from './fold.js'
import { checksumOf, ownerNameOf } from './owner.js'
import { assertPayload } from './payload.js'
import { Pending } from './pending.js'
import type { Piece } from './pieces.js'
import { RollUps } from './roll-ups.js'
import type { StreamWatch } from './watch.js'
import { StreamWatches, type WatchesContext } from './watches.js'

/** What {@link Streams} work with. */
export interface StreamsContext extends WatchesContext {
  /** For how long messages of other nodes arrive, in milliseconds of the clock of `deadlines`. */
  readonly hearingMs: () => number
  readonly broker: Pick<Broker, 'capabilities' | 'read' | 'reachEnd'>
  readonly isLogged: (key: string) => boolean
  readonly publisher: Pick<Publisher, 'publish'>
  /** The node itself, which ends streams that are lost. */
  readonly author: Author
  readonly logger: Pick<Logger, 'debug' | 'warn' | 'error'>
}

/** One message of a writer. */
export interface StreamWrite {
  readonly key: string
  readonly stream: string
  readonly sequence: number
  readonly kind: WriteKind
  /** Borrowed for the duration of the call. */
  readonly payload: Uint8Array | string
}

/** A message on its way. */
interface OwnWrite extends StreamWrite {
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** `undefined`: the server ends a stream that is another's. */
  readonly owner: string | undefined
  readonly checksum: number
}

/** The last stream of a key. */
export interface StreamReading {
  readonly facts: StreamFacts
  /** The whole; `undefined` while nothing was appended. */
  readonly whole: Piece | undefined
  /** It as one message, if that was asked for. Shared. */
  readonly payload: Uint8Array | undefined
  /** It has everything up to here. */
  readonly position: Position
  readonly gap: ReadResult['gap']
}

/** Counters since the start; `activeCount` now. */
export interface StreamStats {
  readonly activeCount: number
  readonly keptBytes: number
  readonly appendCount: number
  readonly lostCount: number
  readonly lostFailedCount: number
  /** Ended streams that could not be made one message of the log. */
  readonly rollUpFailedCount: number
}

/** A writer has one message at a time on its way: all that wait are looked at with each message of the key. */
const MAX_WRITES_AT_ONCE = 64
/** Memory of a watch that reads the log, a page of messages included. An estimate. */
const OPENING_BYTES = 65_536
/** Share of the outbox that the answer to a read may take. */
const READ_SHARE = 1 / 2
const NOTHING = new Uint8Array()
/** Refusals that a later part of the log may undo: another stream has ended, of this key or of this user. The others stay true. */
const UNDOABLE: ReadonlySet<string> = new Set(['E_STREAM_BUSY', 'E_STREAM_LIMIT'])

/**
 * The streams of a node: messages that grow by appends until they end. A stream consists of logged messages of its key, and
 * what it is follows from their order in the log alone, so no nodes have to agree on anything. A node watches the keys
 * where somebody writes or reads.
 */
export class Streams {
  readonly watches: StreamWatches
  readonly #context: StreamsContext
  readonly #rollUps: RollUps
  #appendCount = 0
  #lostCount = 0
  #lostFailedCount = 0
  #hasWarned = false

  constructor(context: StreamsContext) {
    this.#context = context
    this.watches = new StreamWatches(context, (watch) => this.#lost(watch))
    this.#rollUps = new RollUps(context)
  }

  /** The largest stream: one that fits into the answer to a read. */
  get maxBytes(): number {
    const { maxStreamBytes, maxOutboxBytes } = this.#context.limits
    return Math.min(maxStreamBytes, maxOutboxBytes * READ_SHARE)
  }

  stats(): StreamStats {
    const { activeCount, keptBytes } = this.watches
    return {
      activeCount,
      keptBytes,
      appendCount: this.#appendCount,
      lostCount: this.#lostCount,
      lostFailedCount: this.#lostFailedCount,
      rollUpFailedCount: this.#rollUps.failedCount,
    }
  }

  /**
   * Writes a message of a stream. Resolves once this node has seen it in the log, so that the answer is final.
   * @param author Pays if this node does not watch the key, and has to read the log.
   * @throws {WebMQError} `E_UNSUPPORTED`, `E_PAYLOAD_INVALID`, `E_STREAM_BUSY` with `retryAfterMs`, `E_STREAM_ENDED`, `E_STREAM_SEQUENCE`,
   *   `E_STREAM_LIMIT`, `E_FORBIDDEN`, `E_RATE_LIMIT`, `E_NODE_BEHIND`, and the errors of {@link Publisher.publish}.
   */
  async write(author: Author, write: StreamWrite, isBinary: boolean): Promise<Accepted> {
    const { key, sequence, kind } = write
    this.assertSupported(key)
    assertKeyWords(key, author.limits, refusalOf)
    assertMayPublish(author, key)
    const payload = typeof write.payload === 'string' ? Buffer.from(write.payload) : copyBytes(write.payload)
    assertPayload(kind, payload, isBinary)
    if ((kind === 'start') !== (sequence === 0) && kind !== 'beat')
      throw refusalOf('E_STREAM_SEQUENCE', { detail: `${kind} with the number ${sequence}` })
    const name = kind === 'stop' && isTrusted(author) ? undefined : ownerNameOf(author)
    const own: OwnWrite = { ...write, payload, isBinary, owner: name, checksum: checksumOf(kind, payload, isBinary) }
    const isOpening = !this.watches.has(key)
    const byteCount = payload.length + PENDING_OVERHEAD_BYTES
    const openingCount = isOpening ? payload.length + OPENING_BYTES : byteCount
    assertRoom(author, openingCount)
    // An append goes on with a stream that another node has begun, or this one before.
    const isBegun = kind === 'start' || (kind === 'append' && isOpening)
    const begun = isBegun ? this.#surely(() => this.watches.begin(write, author)) : undefined
    // What came with it in one turn is judged behind it.
    const owner = isPromise(begun) ? await begun : begun
    const pending = new Pending(author, openingCount)
    const use = async (watch: StreamWatch) => {
      pending.change(byteCount)
      const judged = this.#surely(() => this.#judge(watch, own), watch, author)
      const known = isPromise(judged) ? await judged : judged
      if (known !== undefined) return known
      if (kind === 'append') this.#assertSize(watch, own, payload.length)
      if (watch.writeCount >= MAX_WRITES_AT_ONCE)
        throw refusalOf('E_RATE_LIMIT', { detail: `${MAX_WRITES_AT_ONCE} messages of this stream wait` })
      watch.writeCount++
      try {
        return await this.#published(watch, author, own, pending)
      } finally {
        watch.writeCount--
        if (kind !== 'start' && kind !== 'beat') this.#rollUps.update(watch, true)
      }
    }
    return await this.watches.use(key, use, author).finally(() => {
      pending.change(0)
      if (owner !== undefined) this.watches.begun(key, owner)
    })
  }

  /**
   * Reads the last stream of a key.
   * @param needsPayload The whole is encoded, too: once for all who read it.
   * @param reader Pays for what is read.
   * @throws {WebMQError} `E_UNSUPPORTED`, `E_STREAM_LIMIT` when this node has no room, and the errors of {@link Broker.read}.
   */
  async read(key: string, needsPayload: boolean, reader: Reader): Promise<StreamReading> {
    this.assertSupported(key)
    const use = (watch: StreamWatch): StreamReading => {
      const { fold, position, gap } = watch
      if (position === undefined) throw refusalOf('E_NODE_BEHIND')
      this.#rollUps.update(watch, false)
      const payload = needsPayload ? fold.payload : undefined
      return { facts: fold.facts, whole: fold.whole, position, gap, payload }
    }
    return await this.watches.look(key, use, reader)
  }

  /**
   * Passes the watch of a key, which has everything that the log had, and goes on with it.
   * @param reader Pays for what is read.
   * @param isWriter It may grow.
   * @throws {WebMQError} As {@link read}.
   */
  async use<T>(key: string, use: (watch: StreamWatch) => Promise<T>, reader: Reader, isWriter = false): Promise<T> {
    this.assertSupported(key)
    const useAll = async (watch: StreamWatch) => {
      await watch.followAll(reader)
      watch.isAsked ||= !isWriter && !watch.fold.isActive
      const used = await use(watch)
      this.#rollUps.update(watch, isWriter)
      return used
    }
    return await this.watches.use(key, useAll, reader)
  }

  /** Whether the nodes have copies of the log, which may be a moment behind. */
  get hasCopies(): boolean {
    return this.#context.broker.reachEnd !== undefined
  }

  /**
   * Reads to where the log ends now: what a node refuses by what it knows then stays refused.
   * @throws {WebMQError} As {@link Broker.reachEnd} and {@link read}.
   */
  async reachEnd(watch?: StreamWatch, reader?: Reader): Promise<void> {
    const { broker } = this.#context
    if (broker.reachEnd === undefined) return
    await broker.reachEnd()
    await watch?.followAll(reader)
  }

  /** `count` more appends were taken, of streams with many writers. */
  countAppends(count: number): void {
    this.#appendCount += count
  }

  /** Ends all watches. Streams go on: another node may have their writers next. */
  stop(): void {
    this.watches.stop()
  }

  /** @throws {WebMQError} `E_UNSUPPORTED`. */
  assertSupported(key: string): void {
    const { broker, isLogged } = this.#context
    if (!broker.capabilities.sharedLog) throw refusalOf('E_UNSUPPORTED', { detail: 'streams: the nodes share no log' })
    if (!isLogged(key)) throw refusalOf('E_UNSUPPORTED', { detail: `streams: ${key} is not logged (history)` })
  }

  /** Decides again at the end of the log before it refuses what another node may have made possible. */
  #surely<T>(decide: () => T, watch?: StreamWatch, reader?: Reader): MaybePromise<T> {
    try {
      return decide()
    } catch (error) {
      if (!this.hasCopies || !(error instanceof WebMQError && UNDOABLE.has(error.code))) throw error
      return this.reachEnd(watch, reader).then(decide)
    }
  }

  /** What is known before the message is written: `undefined` when it may be. */
  #judge(watch: StreamWatch, { stream, sequence, kind, owner, checksum }: OwnWrite): Accepted | undefined {
    const { fold } = watch
    if (fold.shared !== undefined && fold.stream === stream && fold.status !== 'delete')
      throw refusalOf('E_UNSUPPORTED', { detail: 'this stream has many writers: append over HTTP' })
    if (kind === 'start' && fold.isActive && !(fold.stream === stream && fold.isOf(owner))) throw this.#busy(watch)
    // It may have begun where this node has not come to yet: the log will tell.
    if (fold.stream !== stream) return undefined
    if (!fold.isOf(owner)) throw refusalOf('E_FORBIDDEN', { detail: 'somebody else writes this stream' })
    if (kind === 'beat' && fold.isActive) return undefined
    const isSame = sequence < fold.sequence || (sequence === fold.sequence && (fold.isActive || fold.status === kind))
    if (isSame && kind !== 'beat') {
      if (fold.isRepeat(sequence, checksum)) return { isDuplicate: true }
      throw refusalOf('E_STREAM_SEQUENCE', { detail: `another message has the number ${sequence}` })
    }
    if (!fold.isActive) throw refusalOf('E_STREAM_ENDED', { detail: fold.status })
    return undefined
  }

  async #published(watch: StreamWatch, author: Author, write: OwnWrite, pending: Pending): Promise<Accepted> {
    const { publisher } = this.#context
    const { key, stream, sequence, kind, payload, isBinary, owner, checksum } = write
    const place = formatStreamPlace({ stream, sequence, kind })
    const isBeat = kind === 'beat'
    // The messages of two owners never stand for each other.
    const messageId = isBeat ? undefined : `${stream}:${sequence}${owner === undefined ? '' : `:${owner}`}`
    const assertChange = this.#assertChange(watch, write)
    const draft = { key, payload, messageId, place, owner, checksum, ephemeral: isBeat, assertChange }
    // Its publisher counts it, until it is accepted.
    const byteCount = pending.change(0)
    const accepted = await publisher.publish(author, draft, isBinary)
    pending.change(byteCount)
    if (isBeat) return accepted
    const isSeen = await watch.until(() => {
      const { fold, position } = watch
      if (fold.stream === stream && fold.sequence >= sequence) return true
      return accepted.position !== undefined && position !== undefined && !isAfter(accepted.position, position)
    })
    if (!isSeen) {
      watch.gapped()
      throw refusalOf('E_NODE_BEHIND')
    }
    if (kind === 'append') this.#appendCount++
    if (this.#judge(watch, write) !== undefined) return accepted
    // Its writer was given up, and another stream came.
    throw refusalOf('E_STREAM_ENDED', { detail: `${watch.fold.stream ?? 'none'} is the stream of this key` })
  }

  #busy(watch: StreamWatch): Error {
    return Object.assign(refusalOf('E_STREAM_BUSY', { detail: watch.key }), { retryAfterMs: Math.ceil(watch.leftMs) })
  }

  #assertSize({ fold }: StreamWatch, { stream }: StreamWrite, addedBytes: number): void {
    // It may have begun where this node has not come to yet.
    if (fold.stream !== stream) return
    const { byteCount, appendCount } = fold
    const { maxStreamAppends } = this.#context.limits
    if (byteCount + addedBytes > this.maxBytes)
      throw refusalOf('E_STREAM_LIMIT', { detail: `${this.maxBytes} bytes (maxStreamBytes)` })
    if (appendCount >= maxStreamAppends)
      throw refusalOf('E_STREAM_LIMIT', { detail: `${maxStreamAppends} appends (maxStreamAppends)` })
  }

  /** A hook may change what is appended: neither its key nor its kind. */
  #assertChange(watch: StreamWatch, write: StreamWrite): Draft['assertChange'] {
    return ({ key, payload }, isBinary) => {
      if (key !== watch.key) throw refusalOf('E_HOOK_FAILED', { detail: 'a stream keeps its key' })
      const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
      assertPayload(write.kind, bytes, isBinary)
      if (write.kind === 'append') this.#assertSize(watch, write, bytes.length)
    }
  }

  /** Its writer was silent for too long. Several nodes may find that, and one message tells all. */
  #lost(watch: StreamWatch): void {
    watch.renew()
    // Beats are in no log: those of the time in which this node was cut off are gone.
    const { hearingMs, limits } = this.#context
    if (hearingMs() < limits.streamLeaseMs) return
    this.#endLost(watch).catch((err: unknown) => {
      // The next lease tries again.
      this.#lostFailedCount++
      if (this.#hasWarned) return
      this.#hasWarned = true
      const { key } = watch
      this.#context.logger.warn(
        { err, key },
        'streams without their writers could not be ended; each is tried again after its lease',
      )
    })
  }

  async #endLost(watch: StreamWatch): Promise<void> {
    const { publisher, author } = this.#context
    const { key, lease } = watch
    // The log is asked first: this node may have stood still.
    await watch.follow()
    const { stream = '', sequence, isActive } = watch.fold
    if (!isActive || watch.lease !== lease) return
    const place = formatStreamPlace({ stream, sequence: sequence + 1, kind: 'lost' })
    const messageId = `${stream}:${sequence + 1}`
    const accepted = await publisher.publish(author, { key, payload: NOTHING, messageId, place }, false)
    if (!accepted.isDuplicate) this.#lostCount++
    this.#hasWarned = false
    if (await watch.until(() => !watch.fold.isActive)) this.#rollUps.update(watch, true)
  }
}
