import { randomBytes } from 'node:crypto'
import { formatStreamPlace, refusalOf, type StreamPlace, WebMQError } from 'webmq-client/protocol'
import { LogPace } from '../../kernel/base/log-pace.js'
import type { Logger } from '../../kernel/base/logger.js'
import { assertMayPublish } from '../../kernel/identity/access.js'
import type { Reader } from '../../kernel/ports/broker.js'
import { isAfter } from '../../kernel/ports/position.js'
import { assertKeyWords } from '../../kernel/ports/word-limits.js'
import type { Author } from '../../kernel/publishing/author.js'
import type { Publisher } from '../../kernel/publishing/publisher.js'
import type { StreamFold } from './fold.js'
import { formatMark, type Mark } from './shared-state.js'
import type { Streams } from './streams.js'
import type { StreamWatch } from './watch.js'

/** What {@link SharedStreams} work with. */
export interface SharedStreamsContext {
  readonly streams: Pick<Streams, 'use' | 'maxBytes' | 'countAppends' | 'hasCopies' | 'reachEnd'>
  readonly publisher: Pick<Publisher, 'publish'>
  /** The node itself, which notes that streams are read. */
  readonly author: Author
  readonly logger: Pick<Logger, 'warn'>
}

/** The next message of a stream with many writers. */
export interface SharedWrite {
  readonly stream: string
  readonly sequence: number
  readonly kind: 'start' | 'append' | 'close' | 'delete'
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly mark: Omit<Mark, 'token'>
  /** Refuses what a hook has made of the payload. */
  readonly assertChange?: ((payload: Uint8Array) => void) | undefined
}

/**
 * What to write next; `undefined`: no more.
 * @param isTaken The message that it returned last is part of the stream.
 */
export type Decide = (fold: StreamFold, isTaken: boolean) => SharedWrite | undefined

/** Attempts of one request that fail because writers on other nodes are faster. */
const MAX_LOST_RACES = 16
/** Messages of one request: an expired stream is deleted, another one begins, and gets its first content. */
const MAX_MESSAGES = 4
const TOKEN_BYTES = 6
const LOG_INTERVAL_MS = 60_000
const NOTHING = new Uint8Array()

/** Streams with many writers, which compete for the numbers of its messages. */
export class SharedStreams {
  readonly #context: SharedStreamsContext
  /** Keys of which a read is being noted. */
  readonly #touching = new Set<string>()
  readonly #pace = new LogPace(LOG_INTERVAL_MS)

  constructor(context: SharedStreamsContext) {
    this.#context = context
  }

  /** The largest stream. */
  get maxBytes(): number {
    return this.#context.streams.maxBytes
  }

  /** See {@link Streams.use}. */
  use<T>(key: string, use: (watch: StreamWatch) => Promise<T>, reader: Reader): Promise<T> {
    return this.#context.streams.use(key, use, reader)
  }

  /** What another node has answered may be on its way to this one. @throws {WebMQError} As {@link Streams.reachEnd}. */
  reachEnd(watch: StreamWatch, reader: Reader): Promise<void> {
    return this.#context.streams.reachEnd(watch, reader)
  }

  /**
   * Writes to a stream. Each message is decided on what the stream is, and has the next number. If another one came to have that
   * number, `decide` is asked again: so what it decided on is what the stream was when its message was taken. Before nothing is
   * written, or it refuses, it is asked again at the end of the log: another node may have taken what this one has not seen yet.
   * @throws {WebMQError} `E_NODE_BEHIND`, `E_DISCONNECTED` when the author is gone, what `decide` throws, and the errors of
   *   {@link Streams.use} and {@link Publisher.publish}.
   */
  async compete(author: Author, key: string, decide: Decide): Promise<void> {
    assertKeyWords(key, author.limits, refusalOf)
    assertMayPublish(author, key)
    const { streams } = this.#context
    const use = async (watch: StreamWatch) => {
      const inTurn = (isAtEnd: boolean) => {
        const written = watch.turn.then(() => this.#written(author, watch, decide, isAtEnd))
        watch.turn = written.catch(() => undefined)
        return written
      }
      let appendCount = await inTurn(!streams.hasCopies)
      if (appendCount === undefined) {
        // Others may write meanwhile.
        await this.reachEnd(watch, author)
        appendCount = await inTurn(true)
      }
      streams.countAppends(appendCount ?? 0)
    }
    await streams.use(key, use, author, true)
  }

  /**
   * Somebody reads a stream with a time to live: the node notes it in the log, one read of a key at a time. Nobody waits for it:
   * while the broker is away reads are not noted, and the next one that is due tries again.
   */
  touch(key: string, { stream = '', sequence }: StreamFold): void {
    if (this.#touching.has(key)) return
    this.#touching.add(key)
    const { publisher, author, logger } = this.#context
    const { place } = placeOf({ stream, sequence, kind: 'beat' }, { atMs: Date.now() })
    const note = async () => await publisher.publish(author, { key, payload: NOTHING, place }, false)
    const failed = (err: unknown) => {
      const others = this.#pace.take()
      if (others !== undefined) logger.warn({ err, key, others }, 'reads of streams with a time to live are not noted')
    }
    note()
      .catch(failed)
      .finally(() => this.#touching.delete(key))
  }

  /**
   * @param isAtEnd The node has all that the log had when the request came.
   * @returns How many appends were taken; `undefined`: no message was, and a later part of the log may change that.
   */
  async #written(author: Author, watch: StreamWatch, decide: Decide, isAtEnd: boolean): Promise<number | undefined> {
    let takenCount = 0
    let appendCount = 0
    let isTaken = false
    for (let lostCount = 0; lostCount < MAX_LOST_RACES; lostCount += isTaken ? 0 : 1) {
      if (author.isClosed) throw refusalOf('E_DISCONNECTED')
      // What it has written itself, it has seen at its place in the log.
      const write = isAtEnd || isTaken ? decide(watch.fold, isTaken) : decided(decide, watch.fold)
      if (write === undefined) return isAtEnd || isTaken ? appendCount : undefined
      if (takenCount === MAX_MESSAGES) break
      isTaken = await this.#publish(author, watch, write)
      if (isTaken) takenCount++
      if (isTaken && write.kind !== 'start' && write.payload.length > 0) appendCount++
    }
    throw refusalOf('E_NODE_BEHIND', { detail: 'too many write to this stream' })
  }

  /** @returns Whether the message was taken. */
  async #publish(author: Author, watch: StreamWatch, write: SharedWrite): Promise<boolean> {
    const { key } = watch
    const { stream, sequence, payload, isBinary } = write
    const { place, token } = placeOf(write, write.mark)
    const draft = { key, payload, place, assertChange: changeCheckOf(key, write) }
    const { position: at } = await this.#context.publisher.publish(author, draft, isBinary)
    let isTaken = false
    const isSeen = await watch.until(() => {
      const { fold, position } = watch
      // Asked with each message: the next one may begin another stream.
      isTaken ||= fold.stream === stream && fold.shared?.recent.includes(`${sequence}:${token}`) === true
      if (isTaken || (fold.stream === stream && fold.sequence >= sequence)) return true
      return at !== undefined && position !== undefined && !isAfter(at, position)
    })
    if (isSeen) return isTaken
    watch.gapped()
    throw refusalOf('E_NODE_BEHIND')
  }
}

/** What it decides on what may be behind; `undefined`: nothing yet. */
function decided(decide: Decide, fold: StreamFold): SharedWrite | undefined {
  try {
    return decide(fold, false)
  } catch (error) {
    if (error instanceof WebMQError && error.code !== 'E_NODE_BEHIND') return undefined
    throw error
  }
}

/** A hook may change what is appended: neither its key nor its kind. */
function changeCheckOf(key: string, { isBinary, assertChange }: SharedWrite) {
  return (changed: { readonly key: string; readonly payload: Uint8Array | string }, isChangedBinary: boolean) => {
    if (changed.key !== key || isChangedBinary !== isBinary)
      throw refusalOf('E_HOOK_FAILED', { detail: 'a stream keeps its key, and bytes stay bytes' })
    assertChange?.(typeof changed.payload === 'string' ? Buffer.from(changed.payload) : changed.payload)
  }
}

/** The place of a message, with a mark of its own. */
function placeOf(place: Omit<StreamPlace, 'mark'>, mark: Omit<Mark, 'token'>) {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  return { place: formatStreamPlace({ ...place, mark: formatMark({ ...mark, token }) }), token }
}
