import { refusalOf, type WriteKind } from 'webmq-client/protocol'
import type { Deadlines } from '../../kernel/base/deadlines.js'
import { clientNameOf, isTrusted } from '../../kernel/identity/actor.js'
import type { Broker, Reader } from '../../kernel/ports/broker.js'
import type { Author } from '../../kernel/publishing/author.js'
import type { Listen } from '../../kernel/routing/local-listeners.js'
import { UnusedWatches } from './unused-watches.js'
import { type StreamOwner, StreamWatch } from './watch.js'

/** Limits of streams, by their options. */
export interface StreamLimits {
  readonly streamLeaseMs: number
  readonly maxStreamBytes: number
  readonly maxStreamAppends: number
  readonly maxStreamsPerUser: number
  readonly maxStreamsPerNode: number
  /** A stream is read as one message. */
  readonly maxOutboxBytes: number
}

/** What {@link StreamWatches} work with. */
export interface WatchesContext {
  readonly broker: Pick<Broker, 'read'>
  readonly isRetained: (key: string) => boolean
  readonly listen: Listen
  readonly deadlines: Pick<Deadlines, 'now' | 'set' | 'clear'>
  readonly limits: StreamLimits
}

/** Memory of all streams that a node keeps; beyond it, the texts that were asked for the longest ago are forgotten. */
const MAX_KEPT_BYTES = 64 * 1_048_576
/** The keys whose streams a node watches. All that they keep is counted, and bounded. */
export class StreamWatches {
  readonly #context: WatchesContext
  readonly #silent: (watch: StreamWatch) => void
  readonly #byKey = new Map<string, StreamWatch>()
  /** Those with a text; that which was asked for the longest ago comes first. */
  readonly #withText = new Set<StreamWatch>()
  readonly #unused: UnusedWatches
  readonly #byOwner = new Map<string, number>()
  #keptBytes = 0

  /** @param silent The writer of a stream was silent for the lease. */
  constructor(context: WatchesContext, silent: (watch: StreamWatch) => void) {
    this.#context = context
    this.#silent = silent
    this.#unused = new UnusedWatches(context.deadlines, (watch) => this.#close(watch))
  }

  /** Estimated memory of all streams. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  get activeCount(): number {
    let count = 0
    for (const { fold } of this.#byKey.values()) if (fold.isActive) count++
    return count
  }

  /** Otherwise a message of this key is dear: the log is read for it. */
  has(key: string): boolean {
    return this.#byKey.has(key)
  }

  stop(): void {
    for (const watch of [...this.#byKey.values()]) this.#close(watch)
  }

  /**
   * Passes the watch of a key, which has read the log.
   * @param reader Pays if it has to be read.
   * @throws {WebMQError} `E_STREAM_LIMIT` when this node watches too many keys, and the errors of {@link Broker.read}.
   */
  async use<T>(key: string, use: (watch: StreamWatch) => Promise<T>, reader: Reader): Promise<T> {
    const known = this.#byKey.get(key)
    const watch = known ?? this.#open(key)
    this.#byKey.set(key, watch)
    // It is the last one now whose text is forgotten.
    this.#withText.delete(watch)
    this.#unused.delete(watch)
    watch.userCount++
    try {
      if (known === undefined) {
        watch.opened = this.#listen(watch).then(async (unlisten) => {
          if (watch.isClosed) unlisten()
          watch.unlisten = unlisten
          await watch.follow(reader)
        })
      }
      await watch.opened
      if (watch.isStale) await watch.follow(reader)
      return await use(watch)
    } catch (error) {
      if (watch.position === undefined) this.#close(watch)
      throw error
    } finally {
      watch.userCount--
      this.#changed(watch)
    }
  }

  /**
   * Passes the watch of a key, text included, to somebody who goes on until the text is forgotten.
   * @throws {WebMQError} `E_STREAM_LIMIT` when the texts that others follow leave no room, too, and as {@link use}.
   */
  async follow(key: string, use: (watch: StreamWatch) => Promise<void>, reader: Reader): Promise<void> {
    const useAll = async (watch: StreamWatch) => {
      await watch.followAll(reader)
      this.#changed(watch)
      if (this.#keptBytes > MAX_KEPT_BYTES)
        throw refusalOf('E_STREAM_LIMIT', { detail: `${MAX_KEPT_BYTES} bytes of all streams that are read` })
      watch.followerCount++
      try {
        await use(watch)
      } finally {
        watch.followerCount--
      }
    }
    await this.use(key, useAll, reader)
  }

  /**
   * Passes a watch of a key that has all of the log, text included. A key without an active stream is read and not watched.
   * @throws {WebMQError} As {@link use}.
   */
  async look<T>(key: string, use: (watch: StreamWatch) => T, reader: Reader): Promise<T> {
    if (!this.#byKey.has(key)) {
      const watch = this.#create(key)
      try {
        await watch.follow(reader)
        if (!watch.fold.isActive) return use(watch)
      } finally {
        watch.close()
      }
    }
    const useAll = async (watch: StreamWatch) => {
      await watch.followAll(reader)
      return use(watch)
    }
    return await this.use(key, useAll, reader)
  }

  #open(key: string): StreamWatch {
    const { limits } = this.#context
    const { first } = this.#unused
    if (this.#byKey.size >= limits.maxStreamsPerNode && first !== undefined) this.#close(first)
    // None of the others is given up for it: each has the lease that ends a stream without its writer.
    if (this.#byKey.size >= limits.maxStreamsPerNode)
      throw refusalOf('E_STREAM_LIMIT', {
        detail: `${limits.maxStreamsPerNode} streams of this node (maxStreamsPerNode)`,
      })
    return this.#create(key)
  }

  /** Its functions live as long as the watch: made beside the reader, they would keep it, its request and its answer. */
  #listen(watch: StreamWatch): Promise<() => void> {
    return this.#context.listen(watch.key, { receive: watch.deliver.bind(watch), onGap: () => watch.gapped(true) })
  }

  #create(key: string): StreamWatch {
    const { broker, isRetained, deadlines, limits } = this.#context
    return new StreamWatch(key, {
      broker,
      isRetained,
      deadlines,
      leaseMs: limits.streamLeaseMs,
      silent: (watch) => this.#silent(watch),
      changed: (watch) => this.#changed(watch),
    })
  }

  /**
   * Counts a stream that begins as one of its author, until {@link begun}: before anything is done for it.
   * @returns `undefined` when it is one already.
   * @throws {WebMQError} `E_STREAM_LIMIT`; `E_RATE_LIMIT` for one that only goes on here: it may come again.
   */
  begin(write: { key: string; stream: string; kind: WriteKind }, author: Author): StreamOwner | undefined {
    const { key, stream, kind } = write
    if (this.#byKey.get(key)?.owner?.stream === stream) return undefined
    const name = isTrusted(author) ? '' : clientNameOf(author)
    const count = this.#byOwner.get(name) ?? 0
    const { maxStreamsPerUser } = this.#context.limits
    if (name !== '' && count >= maxStreamsPerUser)
      throw refusalOf(kind === 'start' ? 'E_STREAM_LIMIT' : 'E_RATE_LIMIT', {
        detail: `${maxStreamsPerUser} streams of this user (maxStreamsPerUser)`,
      })
    this.#byOwner.set(name, count + 1)
    return { stream, name }
  }

  /** The log has decided: it is the stream of its key and counts until it ends, or it is none. */
  begun(key: string, owner: StreamOwner): void {
    const watch = this.#byKey.get(key)
    const isBegun = watch?.fold.isActive === true && watch.fold.stream === owner.stream
    if (!isBegun || watch.owner?.stream === owner.stream) this.#release(owner)
    else {
      this.#release(watch.owner)
      watch.owner = owner
    }
  }

  /** Calls back once this stream, which has begun on this node, is over. Returns `false` if it is not, or somebody waits already. */
  onOver(key: string, stream: string, over: () => void): boolean {
    const owner = this.#byKey.get(key)?.owner
    if (owner?.stream !== stream || owner.over !== undefined) return false
    owner.over = over
    return true
  }

  #release(owner: StreamOwner | undefined): void {
    if (owner === undefined) return
    owner.over?.()
    const count = (this.#byOwner.get(owner.name) ?? 0) - 1
    if (count > 0) this.#byOwner.set(owner.name, count)
    else this.#byOwner.delete(owner.name)
  }

  #changed(watch: StreamWatch): void {
    if (this.#byKey.get(watch.key) !== watch) return
    const { isActive, stream } = watch.fold
    if (watch.owner !== undefined && (!isActive || stream !== watch.owner.stream)) {
      this.#release(watch.owner)
      watch.owner = undefined
    }
    const isUnused = watch.userCount === 0
    if (isUnused && !isActive && (stream === undefined || !watch.isAsked)) {
      this.#close(watch)
      return
    }
    // The lease ends another one.
    if (isUnused && (!isActive || watch.fold.shared !== undefined)) this.#unused.add(watch)
    else this.#unused.delete(watch)
    this.#count(watch)
    this.#forgetTexts(() => 0)
    // What others follow makes room for nothing but its own growth.
    if (watch.followerCount > 0) this.#forgetTexts(({ followerCount }) => followerCount)
  }

  /** Forgets texts with at most `usersOf` users. Whoever reads one next folds it again. */
  #forgetTexts(usersOf: (watch: StreamWatch) => number): void {
    for (const watch of this.#withText) {
      if (this.#keptBytes <= MAX_KEPT_BYTES) return
      if (watch.userCount > usersOf(watch)) continue
      watch.forget()
      this.#count(watch)
    }
  }

  #count(watch: StreamWatch): void {
    const { keptBytes, isForgotten } = watch.fold
    if (isForgotten) this.#withText.delete(watch)
    else this.#withText.add(watch)
    this.#keptBytes += keptBytes - watch.countedBytes
    watch.countedBytes = keptBytes
  }

  #close(watch: StreamWatch): void {
    this.#release(watch.owner)
    watch.owner = undefined
    watch.close()
    if (this.#byKey.get(watch.key) === watch) this.#byKey.delete(watch.key)
    this.#withText.delete(watch)
    this.#unused.delete(watch)
    this.#keptBytes -= watch.countedBytes
    watch.countedBytes = 0
  }
}
