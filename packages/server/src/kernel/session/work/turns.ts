import { atRest } from '../../base/at-rest.js'
import { Deadlines } from '../../base/deadlines.js'
import type { MessageRun } from '../../ports/message-run.js'
import type { Transport } from '../../ports/transport.js'
import type { WorkStats } from '../../ports/work-meter.js'
import { MAX_ROUND_MS, Pace, ROUND_UNITS, TURN_UNITS } from './pace.js'
import { SessionQueue, type WorkLimits, type WorkOwner } from './session-queue.js'

export interface TurnsContext<Owner extends WorkOwner> {
  readonly transport: Pick<Transport, 'capabilities' | 'pause' | 'resume'>
  readonly limits: WorkLimits
  /** Largest message that a transport passes on. */
  readonly maxMessageBytes: number
  /** Handles the present message of a run. @param hasWaited It has waited for its turn. */
  readonly handle: (queue: SessionQueue<Owner>, run: MessageRun, hasWaited: boolean) => void
  /** Called at the beginning of each turn, for what waits elsewhere. */
  readonly begin: (queue: SessionQueue<Owner>) => void
  readonly onError: (error: unknown) => void
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** Reading is paused when more waits. Copies of 64 KiB are cheaper than reading that stops and starts again. */
const PAUSE_BYTES = 65_536
/** A larger message waits behind others who wait: what comes after it should not. */
const LARGE_BYTES = 131_072
/** Reading goes on when less waits, before there is nothing left to do. */
const RESUME_BYTES = 16_384
/** Units behind which the turns of a round look at the clock, when everything they began has come to rest. */
const PART_UNITS = 500
/** What may wait of one connection beside its largest message. A transport hands over what it has read before a pause. */
const MAX_BACKLOG_BYTES = 1_048_576
/** Queues that were not used for this time are looked at, and dropped if they are as good as new. */
const MIN_GENERATION_MS = 1_000

/**
 * Lets connections take turns. A connection that has used up its turn waits behind everybody else; one that has used up
 * its work is not read until it has some again. A queue exists only for connections that did something lately.
 */
export class Turns<Owner extends WorkOwner = WorkOwner> {
  readonly #context: TurnsContext<Owner>
  readonly #now: () => number
  readonly #deadlines: Deadlines
  readonly #generationMs: number
  #young = new Map<Owner, SessionQueue<Owner>>()
  #old = new Map<Owner, SessionQueue<Owner>>()
  #generationStartMs: number
  /** A connection that is alone has one long turn instead of several: its messages need not be copied. */
  readonly #pace: Pace
  /** What was looked up last, and how often this changed since the last turns. */
  #last: SessionQueue<Owner> | undefined
  #changeCount = 0
  /** Queues that wait for a turn, in order. */
  readonly #ready = new Set<SessionQueue<Owner>>()
  /** Queues that wait for work to come back. */
  readonly #exhausted = new Set<SessionQueue<Owner>>()
  #immediate: NodeJS.Immediate | undefined
  /** The present round, its first moment and the units of its turns, and whose requests have gone on in it. */
  #isInRound = false
  #roundMs = 0
  #roundUnits = 0
  readonly #resumed: SessionQueue<Owner>[] = []
  #pausedCount = 0
  #pauseCount = 0
  #backlogBytes = 0

  constructor(context: TurnsContext<Owner>) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
    this.#pace = new Pace(this.#now)
    this.#deadlines = new Deadlines({ now: this.#now, onError: context.onError })
    const { workPerSecond, workBurst } = context.limits
    this.#generationMs = Math.max(MIN_GENERATION_MS, (workBurst * 1_000) / workPerSecond)
    this.#generationStartMs = this.#now()
  }

  /** The queue of a connection; call it again instead of keeping the queue. */
  queueOf(owner: Owner): SessionQueue<Owner> {
    if (owner === this.#last?.owner) return this.#last
    this.#changeCount++
    this.#pace.turnUnits = TURN_UNITS
    this.#last = this.#young.get(owner) ?? this.#rejuvenated(owner)
    return this.#last
  }

  /**
   * Handles messages of a connection while its turn lasts, and keeps the others until its next. Pauses reading when too
   * much waits. Returns `false` when there is no room for those that are left, as without the capability `pause`.
   */
  receive(queue: SessionQueue<Owner>, run: MessageRun): boolean {
    const isLarge = this.#ready.size > 0 && run.byteCount > LARGE_BYTES
    if (queue.firstRun === undefined && !isLarge) {
      if (queue.isOver) queue.skipLine(this.#now())
      if (this.#handle(queue, run, false)) return true
    }
    if (queue.byteCount + run.byteCount > MAX_BACKLOG_BYTES + this.#context.maxMessageBytes) return false
    const before = queue.byteCount
    queue.push(run)
    this.#backlogBytes += queue.byteCount - before
    this.enqueue(queue)
    if (queue.isExhausted || queue.byteCount > PAUSE_BYTES) this.#pause(queue)
    return true
  }

  /** Returns whether nothing of the run is left for a later turn. */
  #handle(queue: SessionQueue<Owner>, run: MessageRun, hasWaited: boolean): boolean {
    const { owner } = queue
    while (!queue.isOver && !owner.isClosed) {
      if (!run.next()) return true
      this.#context.handle(queue, run, hasWaited)
    }
    return run.byteCount === 0 || owner.isClosed
  }

  /** Something waits for the next turn of the queue. */
  readonly enqueue = (queue: SessionQueue<Owner>): void => {
    if (this.#exhausted.has(queue)) return
    this.#ready.add(queue)
    if (!this.#isInRound) this.#immediate ??= setImmediate(this.#run)
  }

  /** The connection has closed: nothing of it waits any more. */
  release(owner: Owner): void {
    const queue = this.#young.get(owner) ?? this.#old.get(owner)
    if (queue === undefined) return
    this.#young.delete(owner)
    this.#old.delete(owner)
    this.#last = undefined
    this.#drop(queue)
  }

  stats(): WorkStats {
    return { pausedCount: this.#pausedCount, pauseCount: this.#pauseCount, backlogBytes: this.#backlogBytes }
  }

  /** Nothing waits any more. */
  stop(): void {
    clearImmediate(this.#immediate)
    this.#immediate = undefined
    this.#deadlines.stop()
    for (const queue of [...this.#ready, ...this.#exhausted]) this.#drop(queue)
  }

  /** Begins a round of turns. Behind it, the sockets come first. */
  readonly #run = (): void => {
    this.#immediate = undefined
    this.#roundMs = this.#now()
    this.#roundUnits = 0
    this.#pace.turnUnits = this.#changeCount === 0 && this.#ready.size === 1 ? ROUND_UNITS : TURN_UNITS
    this.#pace.beginRound()
    this.#changeCount = 0
    this.#isInRound = true
    this.#part()
  }

  /**
   * Gives turns in order. A part of a round ends behind a request that goes on, or behind some work. The next part begins when
   * all that has come to rest: so the clock of the round counts what requests do after the call.
   */
  readonly #part = (): void => {
    const startUnits = this.#roundUnits
    const nowMs = this.#now()
    let isOver = this.#isRoundOver(nowMs)
    let isResumed = false
    for (const queue of this.#ready) {
      isOver = isOver || this.#roundUnits >= ROUND_UNITS || this.#pace.isRoundOver
      if (isOver || isResumed || this.#roundUnits - startUnits >= PART_UNITS) break
      this.#ready.delete(queue)
      try {
        isResumed = this.#turn(queue, nowMs)
      } catch (error) {
        this.#context.onError(error)
      }
      if (isResumed) {
        // The request goes on after this call, and uses about one turn.
        this.#resumed.push(queue)
        this.#roundUnits += this.#pace.turnUnits
      } else if (queue.isWaiting && !this.#exhausted.has(queue)) this.#ready.add(queue)
      this.#roundUnits += queue.usedUnits + 1
    }
    if (!isOver && (this.#ready.size > 0 || isResumed)) {
      atRest(this.#part)
      return
    }
    this.#isInRound = false
    for (const queue of this.#resumed.splice(0)) if (queue.isWaiting) this.#ready.add(queue)
    if (this.#ready.size > 0) this.#immediate ??= setImmediate(this.#run)
  }

  #isRoundOver(nowMs: number): boolean {
    return nowMs - this.#roundMs >= MAX_ROUND_MS
  }

  /** Returns whether a request goes on after this call. */
  #turn(queue: SessionQueue<Owner>, nowMs: number): boolean {
    const { owner } = queue
    if (owner.isClosed) {
      this.#drop(queue)
      return false
    }
    const missingMs = queue.beginTurn(nowMs)
    if (missingMs > 0) {
      this.#exhausted.add(queue)
      if (queue.firstRun !== undefined) this.#pause(queue)
      this.#deadlines.set(nowMs + missingMs, () => {
        if (this.#exhausted.delete(queue)) this.enqueue(queue)
      })
      return false
    }
    const isResumed = queue.resumeOne()
    this.#context.begin(queue)
    for (let run = queue.firstRun; run !== undefined && !queue.isOver; run = queue.firstRun) {
      const runBytes = run.byteCount
      try {
        this.#handle(queue, run, true)
      } finally {
        const before = queue.byteCount
        if (queue.firstRun === run) queue.took(runBytes - run.byteCount)
        this.#backlogBytes -= before - queue.byteCount
      }
      if (owner.isClosed) break
    }
    if (queue.isPaused && queue.byteCount <= RESUME_BYTES) this.#resume(queue)
    return isResumed
  }

  #pause(queue: SessionQueue<Owner>): void {
    const { transport } = this.#context
    if (queue.isPaused || !transport.capabilities.pause) return
    queue.isPaused = true
    this.#pausedCount++
    this.#pauseCount++
    transport.pause(queue.owner.connection)
  }

  #resume(queue: SessionQueue<Owner>): void {
    queue.isPaused = false
    this.#pausedCount--
    this.#context.transport.resume(queue.owner.connection)
  }

  #drop(queue: SessionQueue<Owner>): void {
    this.#ready.delete(queue)
    this.#exhausted.delete(queue)
    this.#backlogBytes -= queue.byteCount
    if (queue.isPaused) this.#resume(queue)
    queue.close()
  }

  /** Two generations instead of a timer per queue: one that was not used for a whole generation is looked at. */
  #rejuvenated(owner: Owner): SessionQueue<Owner> {
    const nowMs = this.#now()
    if (nowMs - this.#generationStartMs >= this.#generationMs) {
      const old = this.#old
      this.#old = this.#young
      this.#young = new Map()
      this.#generationStartMs = nowMs
      for (const [other, queue] of old) if (!queue.isFresh(nowMs)) this.#young.set(other, queue)
    }
    const queue =
      this.#young.get(owner) ??
      this.#old.get(owner) ??
      new SessionQueue(owner, this.#context.limits, this.#pace, nowMs, this.enqueue)
    this.#old.delete(owner)
    this.#young.set(owner, queue)
    return queue
  }
}
