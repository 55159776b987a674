import { ERRORS, type ErrorCode, WebMQError } from 'webmq-client/protocol'
import { encodeSseEvent } from '../../doors/sse/events.js'
import { type Deferred, deferred } from '../../kernel/base/deferred.js'
import { encodeWithTexts, JsonText } from '../../kernel/base/json-text.js'
import { logBug } from '../../kernel/base/log-bug.js'
import type { Logger } from '../../kernel/base/logger.js'
import type { Reader } from '../../kernel/ports/broker.js'
import type { KeyRules } from '../../kernel/ports/key-rules.js'
import { formatPosition } from '../../kernel/ports/position.js'
import type { ConnectionId, GroupId, Transport } from '../../kernel/ports/transport.js'
import type { StreamCursor } from '../../kernel/session/gateway/event-streams.js'
import type { Piece } from './pieces.js'
import type { Streams } from './streams.js'
import type { StreamWatch } from './watch.js'

/** What {@link StreamFeeds} work with. */
export interface StreamFeedsContext {
  readonly streams: Pick<Streams, 'assertSupported' | 'watches'>
  readonly transport: Pick<Transport, 'multicast' | 'join' | 'close'>
  readonly logger: Pick<Logger, 'error'>
  /** Parts of their streams are not held back. */
  readonly urgentKeys: Pick<KeyRules, 'covers'>
}

export interface FeedReader extends Reader {
  readonly connection: ConnectionId
}

type Watched = Pick<StreamWatch, 'fold' | 'position' | 'isClosed' | 'until'>

/** What somebody has of a stream; a cursor is one. */
interface Seen extends Pick<StreamCursor, 'sequence' | 'length'> {
  readonly stream: string | undefined
  readonly isCut?: boolean
  readonly isActive?: boolean
}

/** Groups of patterns count up from 0, those of presence from 2^31, and these from here. */
const FIRST_GROUP = 2 ** 31 + 2 ** 30
const MAX_GROUPS = 2 ** 30
/** RFC 6455 §7.4.1. */
const NORMAL_CLOSURE = 1000

/**
 * One stream as events for its readers on this node. Readers who have begun are a group of the transport: what comes is encoded
 * once for all of them, after each turn of the event loop. It follows the fold, so they get what the log has decided.
 */
export class StreamFeed {
  /** Settles when it can be read. */
  readonly opened: Deferred<void> = deferred()
  /** Whether they have begun. */
  readonly #readers = new Map<ConnectionId, boolean>()
  readonly #transport: StreamFeedsContext['transport']
  readonly #group: GroupId
  readonly #isUrgent: boolean
  #watch: Watched | undefined
  #emptied: () => void = () => undefined
  /** What all have who have begun. */
  #seen: Seen | undefined

  constructor(transport: StreamFeedsContext['transport'], group: GroupId, isUrgent = false) {
    this.#transport = transport
    this.#group = group
    this.#isUrgent = isUrgent
  }

  get isOpen(): boolean {
    return this.#watch !== undefined
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0
  }

  enter(connection: ConnectionId): void {
    this.#readers.set(connection, false)
  }

  leave(connection: ConnectionId): void {
    this.#readers.delete(connection)
    if (!this.hasReaders) this.#emptied()
  }

  /** Sends what comes, until it has no readers, or the watch is closed or has no text. */
  async run(watch: Watched): Promise<void> {
    this.#watch = watch
    this.#seen = this.#now
    this.opened.resolve()
    while (this.hasReaders && !watch.isClosed && !watch.fold.isForgotten) {
      const emptied = new Promise<void>((resolve) => {
        this.#emptied = resolve
      })
      await Promise.race([watch.until(() => watch.fold.isForgotten || this.#isBehind), emptied])
      if (!watch.fold.isForgotten) this.#flush()
    }
  }

  /** No more comes: readers come back, and begin anew. */
  end(code: Extract<ErrorCode, 'E_NODE_BEHIND' | 'E_INTERNAL'>): void {
    for (const connection of this.#readers.keys()) this.#close(connection, ERRORS[code].closeCode, code)
  }

  /**
   * The events with which a reader begins, who has what the cursor says. Whoever sends them MUST call {@link begin} in the same
   * turn.
   */
  eventsFor(cursor: StreamCursor | undefined): string {
    this.#flush()
    return this.#eventsAfter(cursor)
  }

  /** The reader has everything up to now: what comes is sent to it, too. */
  begin(connection: ConnectionId): void {
    if (!this.#readers.has(connection)) return
    if (this.#isOver) this.#close(connection)
    else {
      this.#readers.set(connection, true)
      this.#transport.join(connection, this.#group)
    }
  }

  get #fold(): StreamWatch['fold'] {
    if (this.#watch === undefined || this.#watch.fold.isForgotten) throw new WebMQError('E_NODE_BEHIND')
    return this.#watch.fold
  }

  get #now(): Seen {
    const { stream, sequence, isCut, isActive } = this.#fold
    return { stream, sequence, length: this.#length, isCut, isActive }
  }

  /** What readers may have. The other half of a character may follow, and readers of most languages cannot join two halves. */
  get #length(): number {
    const { length, isActive } = this.#fold
    const last = isActive ? this.#fold.after(length - 1) : undefined
    return typeof last === 'string' && HIGH_SURROGATE.test(last) ? length - 1 : length
  }

  get #isOver(): boolean {
    return this.#fold.stream !== undefined && !this.#fold.isActive
  }

  get #isBehind(): boolean {
    const { stream, sequence, isCut } = this.#fold
    return stream !== this.#seen?.stream || sequence !== this.#seen?.sequence || isCut !== this.#seen.isCut
  }

  #flush(): void {
    if (!this.#isBehind) return
    const events = this.#eventsAfter(this.#seen)
    this.#seen = this.#now
    if (events !== '') this.#transport.multicast([this.#group], events, false, undefined, undefined, this.#isUrgent)
    if (!this.#isOver) return
    for (const [connection, hasBegun] of this.#readers) if (hasBegun) this.#close(connection)
  }

  #close(connection: ConnectionId, code = NORMAL_CLOSURE, reason = 'the stream has ended'): void {
    this.leave(connection)
    this.#transport.close(connection, code, reason)
  }

  #eventsAfter(seen: Seen | undefined): string {
    const fold = this.#fold
    const { stream, sequence, isCut, status, result } = fold
    const length = this.#length
    const { isCut: wasCut = false, isActive: wasActive = true } = seen ?? {}
    const goesOn =
      seen !== undefined &&
      seen.stream === stream &&
      wasCut === isCut &&
      seen.sequence <= sequence &&
      seen.length <= length
    const id = stream === undefined ? {} : { id: `${stream}:${sequence}:${length}` }
    const rest = goesOn && seen.length < length ? fold.after(seen.length)?.slice(0, length - seen.length) : undefined
    let events = ''
    if (!goesOn) events = encodeSseEvent({ name: 'whole', ...id, data: this.#whole() })
    else if (rest !== undefined)
      events = encodeSseEvent({ name: 'append', ...id, data: { sequence, ...contentOf(rest) } })
    if (!this.#isOver || (goesOn && !wasActive)) return events
    const data = new JsonText(encodeWithTexts({ sequence, status, result }))
    return `${events}${encodeSseEvent({ name: 'end', id: `${id.id}:end`, data })}`
  }

  #whole(): JsonText {
    const { stream, sequence, status, meta, isCut, whole } = this.#fold
    const position = this.#watch?.position
    const facts = {
      ...(stream === undefined ? { status: 'none' } : { stream, sequence, status }),
      meta,
      ...(isCut ? { isCut } : undefined),
      ...(position === undefined ? undefined : { position: formatPosition(position) }),
      ...contentOf(whole?.slice(0, this.#length) ?? ''),
    }
    return new JsonText(encodeWithTexts(facts))
  }
}

const HIGH_SURROGATE = /[\ud800-\udbff]$/

/** The streams that event streams of this node follow. */
export class StreamFeeds {
  readonly #context: StreamFeedsContext
  readonly #byKey = new Map<string, StreamFeed>()
  readonly #byConnection = new Map<ConnectionId, StreamFeed>()
  #groupCount = 0

  constructor(context: StreamFeedsContext) {
    this.#context = context
  }

  /**
   * Adds a reader, until {@link release}. Resolves when the stream can be read. The first one pays for what is read of the log.
   * @throws {WebMQError} As {@link Streams.read}.
   */
  async enter(reader: FeedReader, key: string): Promise<StreamFeed> {
    const { connection } = reader
    const feed = this.#byKey.get(key) ?? this.#open(key, reader)
    feed.enter(connection)
    this.#byConnection.set(connection, feed)
    await feed.opened.promise
    return feed
  }

  /** The connection has closed. */
  release(connection: ConnectionId): void {
    this.#byConnection.get(connection)?.leave(connection)
    this.#byConnection.delete(connection)
  }

  #open(key: string, reader: Reader): StreamFeed {
    const { logger, streams, transport, urgentKeys } = this.#context
    streams.assertSupported(key)
    const group = (FIRST_GROUP + (this.#groupCount++ % MAX_GROUPS)) as GroupId
    const feed = new StreamFeed(transport, group, urgentKeys.covers(key))
    this.#byKey.set(key, feed)
    const run = async (watch: StreamWatch) => {
      await feed.run(watch)
      // In this turn: nobody enters one that is over.
      this.#byKey.delete(key)
      feed.end('E_NODE_BEHIND')
    }
    const ran = streams.watches.follow(key, run, reader)
    ran.catch((err: unknown) => {
      this.#byKey.delete(key)
      if (!feed.isOpen) return feed.opened.reject(err)
      logBug(logger, { err, key }, 'a stream can no longer be followed')
      feed.end('E_INTERNAL')
    })
    return feed
  }
}

function contentOf(piece: Piece): { readonly text: string } | { readonly base64: string } {
  if (typeof piece === 'string') return { text: piece }
  return { base64: Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString('base64') }
}
