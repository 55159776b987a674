import { refusalOf } from 'webmq-client/protocol'
import type { Deadlines } from '../base/deadlines.js'
import { clientNameOf, isTrusted } from '../identity/actor.js'
import type { Broker } from '../ports/broker.js'
import type { Author } from '../publishing/author.js'
import type { LocalHandler } from '../routing/in-process/listeners.js'
import type { LocalListenOptions } from '../routing/in-process/subscription.js'
import { StreamWatch } from './watch.js'

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
  readonly listen: (pattern: string, handler: LocalHandler, options: LocalListenOptions) => Promise<() => void>
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  readonly limits: StreamLimits
}

/** Memory of all streams that a node keeps; beyond it, those that were asked for the longest ago are forgotten. */
const MAX_KEPT_BYTES = 64 * 1_048_576
/** Watches that are looked at for one that may end. */
const MAX_LOOKED_AT = 64

/** The keys whose streams a node watches. All that they keep is counted, and bounded. */
export class StreamWatches {
  readonly #context: WatchesContext
  readonly #silent: (watch: StreamWatch) => void
  /** Those that were asked for the longest ago come first. */
  readonly #byKey = new Map<string, StreamWatch>()
  readonly #byOwner = new Map<string, number>()
  #keptBytes = 0

  /** @param silent The writer of a stream was silent for the lease. */
  constructor(context: WatchesContext, silent: (watch: StreamWatch) => void) {
    this.#context = context
    this.#silent = silent
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

  stop(): void {
    for (const watch of [...this.#byKey.values()]) this.#close(watch)
  }

  /**
   * Passes the watch of a key, which has read the log.
   * @throws {WebMQError} `E_STREAM_LIMIT` when this node watches too many keys, and the errors of {@link Broker.read}.
   */
  async use<T>(key: string, use: (watch: StreamWatch) => Promise<T>): Promise<T> {
    const known = this.#byKey.get(key)
    const watch = known ?? this.#open(key)
    // It is the last one now that room is made of.
    this.#byKey.delete(key)
    this.#byKey.set(key, watch)
    watch.userCount++
    try {
      if (known === undefined) {
        const { listen } = this.#context
        const deliver: LocalHandler = (payload, message) => watch.deliver(payload, message)
        watch.opened = listen(key, deliver, { onGap: () => watch.gapped() }).then(async (unlisten) => {
          if (watch.isClosed) unlisten()
          watch.unlisten = unlisten
          await watch.follow()
        })
      }
      await watch.opened
      return await use(watch)
    } catch (error) {
      if (watch.position === undefined) this.#close(watch)
      throw error
    } finally {
      watch.userCount--
      this.#changed(watch)
    }
  }

  #open(key: string): StreamWatch {
    const { broker, isRetained, deadlines, limits } = this.#context
    if (this.#byKey.size >= limits.maxStreamsPerNode) {
      const idle = this.#idle()
      if (idle === undefined)
        throw refusalOf('E_STREAM_LIMIT', {
          detail: `${limits.maxStreamsPerNode} streams of this node (maxStreamsPerNode)`,
        })
      this.#close(idle)
    }
    return new StreamWatch(key, {
      broker,
      isRetained,
      deadlines,
      leaseMs: limits.streamLeaseMs,
      silent: (watch) => this.#silent(watch),
      changed: (watch) => this.#changed(watch),
    })
  }

  /** One that nobody of this node writes. Few are looked at: requests in vain cost little. */
  #idle(): StreamWatch | undefined {
    let count = 0
    for (const watch of this.#byKey.values()) {
      if (watch.userCount === 0 && watch.owner === undefined) return watch
      if (++count === MAX_LOOKED_AT) return undefined
    }
    return undefined
  }

  /** Counts the stream as one of its author. @returns Whether it was no other's. */
  take(watch: StreamWatch, author: Author): boolean {
    if (watch.owner !== undefined) return false
    const owner = isTrusted(author) ? '' : clientNameOf(author)
    const count = this.#byOwner.get(owner) ?? 0
    const { maxStreamsPerUser } = this.#context.limits
    if (owner !== '' && count >= maxStreamsPerUser)
      throw refusalOf('E_STREAM_LIMIT', { detail: `${maxStreamsPerUser} streams of this user (maxStreamsPerUser)` })
    this.#byOwner.set(owner, count + 1)
    watch.owner = owner
    return true
  }

  /** It has ended, or never begun. */
  release(watch: StreamWatch): void {
    const { owner } = watch
    if (owner === undefined) return
    watch.owner = undefined
    const count = (this.#byOwner.get(owner) ?? 0) - 1
    if (count > 0) this.#byOwner.set(owner, count)
    else this.#byOwner.delete(owner)
  }

  #changed(watch: StreamWatch): void {
    if (this.#byKey.get(watch.key) !== watch) return
    const { isActive, keptBytes } = watch.fold
    if (!isActive && watch.userCount === 0) {
      this.#close(watch)
      return
    }
    this.#keptBytes += keptBytes - watch.countedBytes
    watch.countedBytes = keptBytes
    for (const other of this.#byKey.values()) {
      if (this.#keptBytes <= MAX_KEPT_BYTES) return
      // Its next writer or reader folds it again.
      if (other.userCount === 0) this.#close(other)
    }
  }

  #close(watch: StreamWatch): void {
    this.release(watch)
    watch.close()
    if (this.#byKey.get(watch.key) === watch) this.#byKey.delete(watch.key)
    this.#keptBytes -= watch.countedBytes
    watch.countedBytes = 0
  }
}
