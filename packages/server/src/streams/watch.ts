import { parseStreamPlace } from 'webmq-client/protocol'
import { copyBytes } from '../base/copy-bytes.js'
import type { Deadline, Deadlines } from '../base/deadlines.js'
import { parseJson } from '../base/parse-json.js'
import type { Broker, InboundMessage, Position, ReadResult } from '../ports/broker.js'
import { isAfter, parsePosition } from '../ports/position.js'
import type { LocalMessage } from '../routing/in-process/listeners.js'
import { StreamFold } from './fold.js'

/** What a {@link StreamWatch} works with. */
export interface WatchContext {
  readonly broker: Pick<Broker, 'read'>
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  /** Silence after which a writer is given up, in milliseconds. */
  readonly leaseMs: number
  /** The stream was silent for so long. */
  silent(watch: StreamWatch): void
  /** Its stream has changed. */
  changed(watch: StreamWatch): void
}

/** Messages of the log that are read at once. */
const PAGE_MESSAGES = 500
/** Time for a message that the broker has accepted to come to this node. */
const SEEN_MS = 2_000

interface Waiting {
  readonly isOver: () => boolean
  readonly settle: (isSeen: boolean) => void
}

/**
 * Keeps the last stream of a key current on this node: the log once, then what is delivered. While its writer is silent, a
 * lease runs, measured on this node: no clocks are compared.
 */
export class StreamWatch {
  readonly key: string
  /** Who began its stream on this node. */
  owner: string | undefined
  isClosed = false
  /** Its memory, as it was counted last. */
  countedBytes = 0
  /** Requests that use it now. */
  userCount = 0
  /** Writes of a stream with many writers come one after the other: settles with the last of them. */
  turn: Promise<unknown> = Promise.resolve()
  /** It listens, and has read the log. */
  opened: Promise<void> = Promise.resolve()
  /** Ends the listen of this node. */
  unlisten: () => void = () => undefined
  readonly #context: WatchContext
  #fold = new StreamFold()
  /** The fold has everything up to here. */
  #position: Position | undefined
  #gap: ReadResult['gap']
  #following: Promise<void> | undefined
  /** Messages came while the log was read. */
  #hasMissed = false
  #isStale = true
  #lease: Deadline | undefined
  #silentAtMs = 0
  readonly #waiting = new Set<Waiting>()

  constructor(key: string, context: WatchContext) {
    this.key = key
    this.#context = context
  }

  get fold(): StreamFold {
    return this.#fold
  }

  get position(): Position | undefined {
    return this.#position
  }

  /** Why messages may be missing in the log. */
  get gap(): ReadResult['gap'] {
    return this.#gap
  }

  /** Time until its writer is given up. */
  get leftMs(): number {
    return this.#lease === undefined ? 0 : Math.max(0, this.#silentAtMs - Date.now())
  }

  /** Reads what the log has more than the fold. */
  async follow(): Promise<void> {
    this.#following ??= this.#follow().finally(() => {
      this.#following = undefined
    })
    await this.#following
  }

  /** Messages may be missing: the log is asked. An error stays for the next request. */
  gapped(): void {
    this.#hasMissed = true
    this.follow().catch(() => {
      this.#isStale = true
    })
  }

  /** A message of the key. */
  deliver(payload: unknown, { position, stream }: LocalMessage): void {
    if (this.#following !== undefined) {
      this.#hasMissed = true
      return
    }
    if (position === undefined) {
      this.#beat(stream)
      return
    }
    const at = parsePosition(position)
    if (this.#position !== undefined && !isAfter(at, this.#position)) return
    const isChanged = take(this.#fold, stream, payload)
    this.#position = at
    if (isChanged) this.renew()
    this.#told()
  }

  /** Resolves once `isOver`, with `false` when that takes longer, when the watch is closed, or with the signal. */
  until(isOver: () => boolean, withinMs = SEEN_MS, signal?: AbortSignal): Promise<boolean> {
    if (isOver()) return Promise.resolve(true)
    if (this.isClosed || signal?.aborted === true) return Promise.resolve(false)
    return new Promise((resolve) => {
      const waiting = {
        isOver,
        settle: (isSeen: boolean) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', giveUp)
          this.#waiting.delete(waiting)
          resolve(isSeen)
        },
      }
      const giveUp = () => waiting.settle(false)
      const timer = setTimeout(giveUp, withinMs)
      signal?.addEventListener('abort', giveUp)
      this.#waiting.add(waiting)
    })
  }

  /** The lease begins anew, while a stream is active. */
  renew(): void {
    const { deadlines, leaseMs } = this.#context
    if (this.#lease !== undefined) deadlines.clear(this.#lease)
    this.#lease = undefined
    if (!this.#fold.isActive || this.#fold.shared !== undefined) return
    this.#silentAtMs = Date.now() + leaseMs
    this.#lease = deadlines.set(this.#silentAtMs, () => this.#context.silent(this))
  }

  close(): void {
    // Its pattern is released once.
    if (this.isClosed) return
    this.isClosed = true
    if (this.#lease !== undefined) this.#context.deadlines.clear(this.#lease)
    this.#lease = undefined
    this.unlisten()
    for (const waiting of this.#waiting) waiting.settle(false)
  }

  async #follow(): Promise<void> {
    let isAnew = this.#isStale
    let mayBeginAnew = true
    let isPartial: boolean
    let fold = this.#fold
    let position = this.#position
    do {
      this.#hasMissed = false
      if (isAnew) {
        // Nobody sees it before it is complete.
        fold = new StreamFold()
        position = undefined
        mayBeginAnew = false
        isAnew = false
      }
      const since = position
      const range = { limit: PAGE_MESSAGES, ...(since === undefined ? undefined : { since }) }
      const read = await this.#context.broker.read(range, [this.key])
      this.#gap = read.gap
      isPartial = read.isPartial
      if (read.gap !== undefined && since !== undefined && mayBeginAnew) {
        isAnew = true
        continue
      }
      for (const message of read.messages) take(fold, message.attributes?.stream, payloadOf(message))
      position = read.position
      if (fold === this.#fold) this.#position = position
    } while (isAnew || isPartial || this.#hasMissed)
    this.#fold = fold
    this.#position = position
    this.#isStale = false
    if (this.#lease === undefined || !this.#fold.isActive) this.renew()
    this.#told()
  }

  #beat(stream: string | undefined): void {
    const place = stream === undefined ? undefined : parseStreamPlace(stream)
    if (place?.kind === 'beat' && place.stream === this.#fold.stream) this.renew()
  }

  #told(): void {
    for (const waiting of this.#waiting) if (waiting.isOver()) waiting.settle(true)
    this.#context.changed(this)
  }
}

function take(fold: StreamFold, stream: string | undefined, payload: unknown): boolean {
  const place = stream === undefined ? undefined : parseStreamPlace(stream)
  return place !== undefined && fold.take(place, payload)
}

/** What another program has written may be anything. */
function payloadOf({ payload, isBinary }: InboundMessage): unknown {
  if (isBinary) return copyBytes(payload)
  if (payload.length === 0) return undefined
  try {
    return parseJson(payload)
  } catch {
    // The fold says that something is missing.
    return undefined
  }
}
