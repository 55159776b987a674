import type { MaybePromise } from '../../base/maybe-promise.js'
import type { MessageRun } from '../../ports/message-run.js'
import type { ConnectionId } from '../../ports/transport.js'
import type { WorkMeter } from '../../ports/work-meter.js'
import { RateGate, type RateLimit } from '../../publishing/rate-gate.js'
import type { Inbox } from '../inbox.js'
import type { Pace } from './pace.js'

export interface WorkOwner {
  readonly connection: ConnectionId
  readonly isClosed: boolean
}

export interface WorkLimits {
  /** Units that a connection gets back per second. */
  readonly workPerSecond: number
  /** Units that a connection may use at once after it was idle. */
  readonly workBurst: number
}

/** A connection that has used less does not wait, even when the others have used up the round. */
const MIN_TURN_UNITS = 50
/** What a connection may use without a turn: half a millisecond per second, for which nobody who floods makes it wait. */
const SPARING_UNITS_PER_MS = 0.5
/** Memory of a run beside its bytes: an object and its place. An estimate. */
const RUN_BYTES = 192

/**
 * What a connection does and asks for: its token bucket, its turn, and what waits for either. The clock is read once per
 * turn, not per message: the units of a turn are counted before they are taken out of the bucket.
 */
export class SessionQueue<Owner extends WorkOwner = WorkOwner> implements WorkMeter {
  readonly owner: Owner
  /** Messages in progress, and messages that wait for those. Absent while there are none. */
  inbox: Inbox | undefined
  /** When the message at hand arrived, while it is one that has waited in the inbox. */
  arrivedMs: number | undefined
  isPaused = false
  readonly #limits: WorkLimits
  readonly #pace: Pace
  readonly #enqueue: (queue: SessionQueue<Owner>) => void
  readonly #waiters: (() => void)[] = []
  /** Messages that wait for a turn, as they arrived. */
  readonly #runs: MessageRun[] = []
  /** Memory of the messages that wait for a turn. */
  byteCount = 0
  /** Units in the bucket; negative for work that was more than expected. */
  #tokens: number
  #settledMs: number
  /** Made by the first publish that is limited, and the limit at the last one. */
  #publishGate: RateGate | undefined
  #publishLimit: RateLimit | undefined
  /** Units of this turn, not yet taken out of the bucket. */
  usedUnits = 0

  /** @param enqueue Called when something waits for the next turn. */
  constructor(
    owner: Owner,
    limits: WorkLimits,
    pace: Pace,
    nowMs: number,
    enqueue: (queue: SessionQueue<Owner>) => void,
  ) {
    this.owner = owner
    this.#limits = limits
    this.#pace = pace
    this.#enqueue = enqueue
    this.#tokens = limits.workBurst
    this.#settledMs = nowMs
  }

  /** What the publishes of the connection pass. @param limit Of now; a token may change it. */
  publishGateOf(limit: RateLimit): RateGate {
    this.#publishLimit = limit
    this.#publishGate ??= new RateGate()
    return this.#publishGate
  }

  /** Whether the turn or the round is used up, or the bucket was empty when the turn should have begun. */
  get isOver(): boolean {
    const { turnUnits, isRoundOver } = this.#pace
    const allowedUnits = isRoundOver ? MIN_TURN_UNITS : turnUnits
    return this.usedUnits >= allowedUnits || this.#tokens <= 0
  }

  /** Whether the bucket was empty when the last turn should have begun. */
  get isExhausted(): boolean {
    return this.#tokens <= 0
  }

  get isWaiting(): boolean {
    return this.#runs.length > 0 || this.#waiters.length > 0
  }

  /** The oldest messages that wait for a turn. */
  get firstRun(): MessageRun | undefined {
    return this.#runs[0]
  }

  /** Keeps messages for later turns. Whoever adds to a queue keeps it bounded. */
  push(run: MessageRun): void {
    run.keep()
    this.#runs.push(run)
    this.byteCount += run.byteCount + RUN_BYTES
  }

  /** `byteCount` bytes of the first run were handled. Drops the run when none are left. */
  took(byteCount: number): void {
    this.byteCount -= byteCount
    if (this.#runs[0]?.byteCount !== 0) return
    this.byteCount -= RUN_BYTES
    this.#runs.shift()?.release()
  }

  charge(units: number): void {
    this.usedUnits += units
    this.#pace.charge(units)
  }

  spend(units: number): MaybePromise<void> {
    this.charge(units)
    if (!this.isOver || this.owner.isClosed) return
    const turn = new Promise<void>((resolve) => {
      this.#waiters.push(resolve)
    })
    this.#enqueue(this)
    return turn
  }

  /** Begins a turn, unless the bucket {@link isExhausted}: then returns the time until it is not, otherwise 0. */
  beginTurn(nowMs: number): number {
    const { workPerSecond, workBurst } = this.#limits
    const gained = ((nowMs - this.#settledMs) * workPerSecond) / 1_000
    this.#tokens = Math.min(workBurst, this.#tokens + gained) - this.usedUnits
    this.#settledMs = nowMs
    this.usedUnits = 0
    return this.#tokens > 0 ? 0 : Math.ceil(((1 - this.#tokens) * 1_000) / workPerSecond)
  }

  /** Begins a turn at once, if it has used so little that it need not wait for one. */
  skipLine(nowMs: number): void {
    if (this.usedUnits <= (nowMs - this.#settledMs) * SPARING_UNITS_PER_MS) this.beginTurn(nowMs)
  }

  /** Lets the oldest request go on that waits for this turn, after the present call. Returns whether there was one. */
  resumeOne(): boolean {
    const resume = this.#waiters.shift()
    resume?.()
    return resume !== undefined
  }

  /** Whether nothing waits and all buckets are full: a new queue would be the same. */
  isFresh(nowMs: number): boolean {
    const gained = ((nowMs - this.#settledMs) * this.#limits.workPerSecond) / 1_000
    if (this.isWaiting || this.isPaused || this.inbox !== undefined) return false
    if (this.#tokens + gained - this.usedUnits < this.#limits.workBurst) return false
    return this.#publishLimit === undefined || this.#publishGate?.isFull(this.#publishLimit, nowMs) !== false
  }

  /** The connection has closed: drops its messages, and lets every request go on. */
  close(): void {
    for (const run of this.#runs.splice(0)) run.release()
    this.byteCount = 0
    this.inbox = undefined
    for (const resume of this.#waiters.splice(0)) resume()
  }
}
