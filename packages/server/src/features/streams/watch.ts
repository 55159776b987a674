import { setImmediate as nextTurn } from 'node:timers/promises'
import { parseStreamPlace, refusalOf } from 'webmq-client/protocol'
import type { Deadline, Deadlines } from '../../kernel/base/deadlines.js'
import type { Broker, InboundMessage, Position, Reader, ReadResult } from '../../kernel/ports/broker.js'
import { isAfter } from '../../kernel/ports/position.js'
import { StreamFold } from './fold.js'
import { takeInto, takeLogged } from './taken.js'

/** What a {@link StreamWatch} works with. */
export interface WatchContext {
  readonly broker: Pick<Broker, 'read'>
  /** Whether the last message of a key is kept, however old it is. */
  readonly isRetained: (key: string) => boolean
  readonly deadlines: Pick<Deadlines, 'now' | 'set' | 'clear'>
  /** Silence after which a writer is given up, in milliseconds of the clock of `deadlines`. */
  readonly leaseMs: number
  /** The stream was silent for so long. */
  silent(watch: StreamWatch): void
  /** Its stream has changed. */
  changed(watch: StreamWatch): void
}

/** Messages of the log that are read at once. */
const PAGE_MESSAGES = 500
/** What is folded per unit of work, beside what it takes to read it. */
const FOLDED_MESSAGES_PER_UNIT = 2
const FOLDED_BYTES_PER_UNIT = 400
/** Bytes that are folded in one turn of the event loop, and one message more: about a millisecond. */
const MAX_TURN_BYTES = 131_072
/** Behind the lease, for what has arrived and was not read: a deadline fires before the sockets are read. */
const LAST_WAIT_MS = 250
/** Time for a message that the broker has accepted to come to this node. */
const SEEN_MS = 2_000
/** Pause after a read that has failed; then twice as long each time, up to the lease. */
const FIRST_PAUSE_MS = 250

/** Whose stream it is, for the limit of streams per user. */
export interface StreamOwner {
  readonly stream: string
  readonly name: string
  /** Called once it is over, or no longer watched. */
  over?: () => void
}

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
  owner: StreamOwner | undefined
  isClosed = false
  /** Its memory, as it was counted last. */
  countedBytes = 0
  /** Requests that use it now. */
  userCount = 0
  /** Of these, writes. */
  writeCount = 0
  /** Of these, those who go on until its text is forgotten. */
  followerCount = 0
  /** Somebody has asked for its stream after the end: others may follow. */
  isAsked = false
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
  /** The log could not be read: no more messages are taken until it was. */
  #isStale = true
  /** Messages came while the log was read. */
  #hasMissed = false
  #pauseMs = FIRST_PAUSE_MS
  #retry: Deadline | undefined
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
    return this.#lease === undefined ? 0 : Math.max(0, this.#silentAtMs - this.#context.deadlines.now())
  }

  /** The lease that runs; another one whenever its writer is heard. */
  get lease(): unknown {
    return this.#lease
  }

  /** The log could not be read when it had to be. */
  get isStale(): boolean {
    return this.#isStale
  }

  /**
   * Reads what the log has more than the fold. When that fails, it is tried again until it succeeds.
   * @param reader Pays, unless somebody else reads already.
   * @param needsText All is read anew if the text was forgotten.
   * @throws {WebMQError} `E_CLOSED` when the reader is gone, and nobody else uses it; and the errors of {@link Broker.read}.
   */
  async follow(reader?: Reader, needsText = false): Promise<void> {
    this.#following ??= this.#follow(reader, needsText)
      .catch((error: unknown) => {
        this.#isStale = true
        this.#retryLater()
        throw error
      })
      .finally(() => {
        this.#following = undefined
      })
    await this.#following
  }

  /** The same, with the text. */
  async followAll(reader?: Reader): Promise<void> {
    await this.follow(reader)
    while (this.#fold.isForgotten) await this.follow(reader, true)
  }

  /** Messages may be missing: the log is read. @param areBeatsMissing So may beats, which are in no log. */
  gapped(areBeatsMissing = false): void {
    if (areBeatsMissing) this.renew()
    this.#hasMissed = true
    // It tries again by itself.
    this.follow().catch(() => undefined)
  }

  /** Frees the text. Stream, owner and lease stay. */
  forget(): void {
    this.#fold.forget()
    this.#settle()
  }

  /** A message of the key, which stays as it is. */
  deliver(message: InboundMessage): void {
    const { position, attributes } = message
    if (position === undefined) {
      this.#beat(attributes?.stream)
      return
    }
    if (this.#following !== undefined || this.#isStale) {
      this.#hasMissed = true
      return
    }
    if (this.#position !== undefined && !isAfter(position, this.#position)) return
    const isChanged = takeInto(this.#fold, message)
    this.#position = position
    if (isChanged) this.renew()
    this.#notifyChanged()
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
    this.#silentAtMs = deadlines.now() + leaseMs
    this.#lease = deadlines.set(this.#silentAtMs, () => {
      this.#lease = deadlines.set(deadlines.now() + LAST_WAIT_MS, () => this.#context.silent(this))
    })
  }

  close(): void {
    // Its pattern is released once.
    if (this.isClosed) return
    this.isClosed = true
    const { deadlines } = this.#context
    for (const deadline of [this.#lease, this.#retry]) if (deadline !== undefined) deadlines.clear(deadline)
    this.#lease = undefined
    this.#retry = undefined
    this.unlisten()
    for (const waiting of this.#waiting) waiting.settle(false)
  }

  async #follow(reader: Reader | undefined, needsText: boolean): Promise<void> {
    const before = this.#fold
    const { stream, sequence } = before
    // What is folded anew takes the place of the fold when it is complete.
    let fold = needsText && before.isForgotten ? new StreamFold() : before
    let since = fold === before ? this.#position : undefined
    let isPartial: boolean
    do {
      this.#hasMissed = false
      if (since === undefined) await this.#takeRetained(fold, reader)
      const range = { view: 'log' as const, limit: PAGE_MESSAGES, ...(since === undefined ? undefined : { since }) }
      // What others use is read to its end, though the reader has gone.
      const isGone = reader?.isClosed === true
      if (isGone && this.userCount === 0) throw refusalOf('E_CLOSED')
      const read = await this.#context.broker.read(range, [this.key], isGone ? undefined : reader)
      this.#gap = read.gap
      isPartial = read.isPartial
      if (read.gap !== undefined && since !== undefined && fold === before) {
        fold = new StreamFold()
        since = undefined
        isPartial = true
        continue
      }
      let byteCount = 0
      let turnBytes = 0
      for (const message of read.messages) {
        takeLogged(fold, message)
        byteCount += message.payload.length
        turnBytes += message.payload.length
        if (turnBytes < MAX_TURN_BYTES) continue
        turnBytes = 0
        await nextTurn()
      }
      since = read.position
      if (fold === before) this.#position = since
      const units = read.messages.length / FOLDED_MESSAGES_PER_UNIT + byteCount / FOLDED_BYTES_PER_UNIT
      // Others would wait for what it owes, too. And what came while it waits would be another page.
      if (isPartial && this.userCount <= 1) await reader?.meter?.spend(units)
      else reader?.meter?.charge(units)
    } while (isPartial || this.#hasMissed)
    this.#fold = fold
    this.#position = since
    this.#isStale = false
    this.#pauseMs = FIRST_PAUSE_MS
    const isSame = fold.stream === stream && fold.sequence === sequence && fold.isActive
    if (this.#lease === undefined || !isSame) this.renew()
    this.#notifyChanged()
  }

  /** The log may no longer have it. If it does, the same comes again. */
  async #takeRetained(fold: StreamFold, reader: Reader | undefined): Promise<void> {
    const { broker, isRetained } = this.#context
    if (!isRetained(this.key)) return
    const { messages } = await broker.read({ view: 'log', isState: true }, [this.key], {
      isClosed: false,
      meter: reader?.meter,
    })
    for (const message of messages) takeLogged(fold, message)
  }

  #retryLater(): void {
    if (this.isClosed || this.#retry !== undefined) return
    const { deadlines, leaseMs } = this.#context
    this.#retry = deadlines.set(deadlines.now() + this.#pauseMs, () => {
      this.#retry = undefined
      if (this.#isStale) this.gapped()
    })
    this.#pauseMs = Math.min(leaseMs, 2 * this.#pauseMs)
  }

  #beat(stream: string | undefined): void {
    const place = stream === undefined ? undefined : parseStreamPlace(stream)
    if (place?.kind === 'beat' && place.stream === this.#fold.stream) this.renew()
  }

  #notifyChanged(): void {
    this.#settle()
    this.#context.changed(this)
  }

  #settle(): void {
    for (const waiting of this.#waiting) if (waiting.isOver()) waiting.settle(true)
  }
}
