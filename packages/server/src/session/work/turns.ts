import { Deadlines } from '../../base/deadlines.js'
import type { MessageMemory, Transport } from '../../ports/transport.js'
import type { WorkStats } from '../../ports/work-meter.js'
import { type Pace, ROUND_UNITS, WorkAccount, type WorkLimits, type WorkOwner } from './account.js'
import type { RawMessage } from './backlog.js'

/** What {@link Turns} works with. */
export interface TurnsContext<Owner extends WorkOwner> {
  readonly transport: Pick<Transport, 'capabilities' | 'pause' | 'resume'>
  readonly limits: WorkLimits
  /** Largest message that a transport passes on. */
  readonly maxMessageBytes: number
  /** Handles a message that has waited. */
  readonly handle: (account: WorkAccount<Owner>, message: RawMessage) => void
  /** Called at the beginning of each turn of an account, for what waits elsewhere. */
  readonly begin: (account: WorkAccount<Owner>) => void
  /** Called when a connection has closed: it gets no further turn. */
  readonly released?: (owner: Owner) => void
  readonly onError: (error: unknown) => void
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** Units of one turn, about half a millisecond. */
const TURN_UNITS = 500
/** Reading is paused when more waits. Copies of 64 KiB are cheaper than reading that stops and starts again. */
const PAUSE_BYTES = 65_536
/** Reading goes on when less waits, before there is nothing left to do. */
const RESUME_BYTES = 16_384
/**
 * What may wait of one connection beside its largest message. The transport hands over what it has read before a pause:
 * the native one 64 KiB, which as 3,277 pings take 630 KiB here.
 */
const MAX_BACKLOG_BYTES = 1_048_576
/** Accounts that were not used for this time are looked at, and dropped if they are as good as new. */
const MIN_GENERATION_MS = 1_000

/**
 * Lets connections take turns. A connection that has used up its turn waits behind everybody else; one that has used up
 * its work is not read until it has some again. An account exists only for connections that did something lately.
 */
export class Turns<Owner extends WorkOwner = WorkOwner> {
  readonly #context: TurnsContext<Owner>
  readonly #now: () => number
  readonly #deadlines: Deadlines
  readonly #generationMs: number
  #young = new Map<Owner, WorkAccount<Owner>>()
  #old = new Map<Owner, WorkAccount<Owner>>()
  #generationStartMs: number
  /** A connection that is alone has one long turn instead of several: its messages need not be copied. */
  readonly #pace: Pace = { turnUnits: TURN_UNITS, roundUnits: 0 }
  /** What was looked up last, and how often this changed since the last turns. */
  #lastAccount: WorkAccount<Owner> | undefined
  #changeCount = 0
  /** Accounts that wait for a turn, in order. */
  readonly #ready = new Set<WorkAccount<Owner>>()
  /** Accounts that wait for work to come back. */
  readonly #exhausted = new Set<WorkAccount<Owner>>()
  #immediate: NodeJS.Immediate | undefined
  #pausedCount = 0
  #pauseCount = 0
  #backlogBytes = 0

  constructor(context: TurnsContext<Owner>) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
    this.#deadlines = new Deadlines({ now: this.#now, onError: context.onError })
    const { workPerSecond, workBurst } = context.limits
    this.#generationMs = Math.max(MIN_GENERATION_MS, (workBurst * 1_000) / workPerSecond)
    this.#generationStartMs = this.#now()
  }

  /** The account of a connection; call it again instead of keeping the account. */
  accountOf(owner: Owner): WorkAccount<Owner> {
    if (owner === this.#lastAccount?.owner) return this.#lastAccount
    this.#changeCount++
    this.#pace.turnUnits = TURN_UNITS
    this.#lastAccount = this.#young.get(owner) ?? this.#rejuvenated(owner)
    return this.#lastAccount
  }

  /**
   * Keeps a message until the turn of its connection comes. Pauses reading when too much waits.
   * Returns `false` when there is no room, as without the capability `pause`.
   */
  defer(account: WorkAccount<Owner>, data: Uint8Array, isBinary: boolean, memory?: MessageMemory): boolean {
    const { backlog } = account
    if (backlog.byteCount + data.length > MAX_BACKLOG_BYTES + this.#context.maxMessageBytes) return false
    const before = backlog.byteCount
    backlog.push(data, isBinary, memory?.receivedMs ?? this.#now(), memory)
    this.#backlogBytes += backlog.byteCount - before
    this.enqueue(account)
    if (account.isExhausted || backlog.byteCount > PAUSE_BYTES) this.#pause(account)
    return true
  }

  /** Something waits for the next turn of the account. */
  readonly enqueue = (account: WorkAccount<Owner>): void => {
    if (this.#exhausted.has(account)) return
    this.#ready.add(account)
    this.#immediate ??= setImmediate(() => this.#run())
  }

  /** The connection has closed: nothing of it waits any more. */
  release(owner: Owner): void {
    this.#context.released?.(owner)
    const account = this.#young.get(owner) ?? this.#old.get(owner)
    if (account === undefined) return
    this.#young.delete(owner)
    this.#old.delete(owner)
    this.#lastAccount = undefined
    this.#drop(account)
  }

  stats(): WorkStats {
    return { pausedCount: this.#pausedCount, pauseCount: this.#pauseCount, backlogBytes: this.#backlogBytes }
  }

  /** Nothing waits any more. */
  stop(): void {
    clearImmediate(this.#immediate)
    this.#immediate = undefined
    this.#deadlines.stop()
    for (const account of [...this.#ready, ...this.#exhausted]) this.#drop(account)
  }

  /** Gives turns in order, until {@link ROUND_UNITS} are used. Then the sockets come first. */
  #run(): void {
    this.#immediate = undefined
    const nowMs = this.#now()
    this.#pace.turnUnits = this.#changeCount === 0 && this.#ready.size === 1 ? ROUND_UNITS : TURN_UNITS
    this.#pace.roundUnits = 0
    this.#changeCount = 0
    const resumed: WorkAccount<Owner>[] = []
    let units = 0
    for (const account of this.#ready) {
      if (units >= ROUND_UNITS) break
      this.#ready.delete(account)
      let isResumed = false
      try {
        isResumed = this.#turn(account, nowMs)
      } catch (error) {
        this.#context.onError(error)
      }
      if (isResumed) {
        // The request goes on after this call, and uses about one turn.
        resumed.push(account)
        units += this.#pace.turnUnits
      } else if (account.isWaiting && !this.#exhausted.has(account)) this.#ready.add(account)
      units += account.usedUnits + 1
    }
    for (const account of resumed) if (account.isWaiting) this.#ready.add(account)
    if (this.#ready.size > 0) this.#immediate ??= setImmediate(() => this.#run())
  }

  /** Returns whether a request goes on after this call. */
  #turn(account: WorkAccount<Owner>, nowMs: number): boolean {
    const { backlog, owner } = account
    if (owner.isClosed) {
      this.#drop(account)
      return false
    }
    const missingMs = account.beginTurn(nowMs)
    if (missingMs > 0) {
      this.#exhausted.add(account)
      if (!backlog.isEmpty) this.#pause(account)
      this.#deadlines.set(nowMs + missingMs, () => {
        if (this.#exhausted.delete(account)) this.enqueue(account)
      })
      return false
    }
    const isResumed = account.resumeOne()
    this.#context.begin(account)
    while (!account.isOver && !owner.isClosed) {
      const before = backlog.byteCount
      const message = backlog.shift()
      if (message === undefined) break
      this.#backlogBytes -= before - backlog.byteCount
      try {
        this.#context.handle(account, message)
      } finally {
        message.memory?.release()
      }
    }
    if (account.isPaused && backlog.byteCount <= RESUME_BYTES) this.#resume(account)
    return isResumed
  }

  #pause(account: WorkAccount<Owner>): void {
    const { transport } = this.#context
    if (account.isPaused || !transport.capabilities.pause) return
    account.isPaused = true
    this.#pausedCount++
    this.#pauseCount++
    transport.pause(account.owner.connection)
  }

  #resume(account: WorkAccount<Owner>): void {
    account.isPaused = false
    this.#pausedCount--
    this.#context.transport.resume(account.owner.connection)
  }

  #drop(account: WorkAccount<Owner>): void {
    this.#ready.delete(account)
    this.#exhausted.delete(account)
    this.#backlogBytes -= account.backlog.byteCount
    if (account.isPaused) this.#resume(account)
    account.close()
  }

  /** Two generations instead of a timer per account: one that was not used for a whole generation is looked at. */
  #rejuvenated(owner: Owner): WorkAccount<Owner> {
    const nowMs = this.#now()
    if (nowMs - this.#generationStartMs >= this.#generationMs) {
      const old = this.#old
      this.#old = this.#young
      this.#young = new Map()
      this.#generationStartMs = nowMs
      for (const [other, account] of old) if (!account.isFresh(nowMs)) this.#young.set(other, account)
    }
    const account =
      this.#young.get(owner) ??
      this.#old.get(owner) ??
      new WorkAccount(owner, this.#context.limits, this.#pace, nowMs, this.enqueue)
    this.#old.delete(owner)
    this.#young.set(owner, account)
    return account
  }
}
