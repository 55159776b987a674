import { isPromise, type MaybePromise } from '../../../kernel/base/maybe-promise.js'
import type { Reader } from '../../../kernel/ports/broker.js'
import type { StepBudget } from './pattern-matcher.js'

/** A part of a read, within the budget. Returns whether the read is done. */
export type Slice = (budget: StepBudget) => boolean

interface Job {
  readonly slice: Slice
  readonly reader: Reader
  resolve(): void
  reject(error: unknown): void
}

/** Steps of all reads in one turn of the event loop: about a millisecond. */
const STEPS_PER_TURN = 32_768
/** Steps of one read before the next one has its turn. */
const STEPS_PER_SLICE = STEPS_PER_TURN / 4
/** Steps to begin a slice. Without them, any number of reads of nothing would fit into one turn. */
const BEGIN_STEPS = 128
/** Steps per unit of work, which is about a microsecond. */
const STEPS_PER_UNIT = 32

/** Reads of the process itself. They share their turns, and nobody pays for them. */
const PROCESS: Reader = { isClosed: false }

/**
 * Shares the event loop between the reads of a log and everything else. A short read is done at once. A long one goes
 * on in later turns; readers take turns, and so do the reads of one reader.
 */
export class ReadTurns {
  #leftSteps = STEPS_PER_TURN
  #isScheduled = false
  /** In order of their turns. */
  readonly #waiting = new Map<Reader, Job[]>()

  /** Calls `slice` until the read is done or its reader is closed. */
  run(slice: Slice, reader: Reader = PROCESS): MaybePromise<void> {
    if (this.#leftSteps > 0) {
      const [isDone, isPaid] = this.#take(slice, reader)
      if (isDone) return
      return this.#wait(slice, reader, isPaid)
    }
    return this.#wait(slice, reader)
  }

  #wait(slice: Slice, reader: Reader, isPaid?: MaybePromise<void>): Promise<void> {
    return new Promise((resolve, reject) => this.#goOn({ slice, reader, resolve, reject }, isPaid))
  }

  #goOn(job: Job, isPaid: MaybePromise<void>): void {
    if (isPromise(isPaid)) isPaid.then(() => this.#push(job), job.reject)
    else this.#push(job)
  }

  #push(job: Job): void {
    const jobs = this.#waiting.get(job.reader)
    if (jobs === undefined) this.#waiting.set(job.reader, [job])
    else jobs.push(job)
    this.#schedule()
  }

  #take(slice: Slice, reader: Reader): [isDone: boolean, isPaid: MaybePromise<void>] {
    const steps = Math.min(STEPS_PER_SLICE, this.#leftSteps)
    const budget = { left: steps - BEGIN_STEPS }
    let isDone = true
    try {
      isDone = slice(budget)
    } finally {
      // The last message may have taken more steps than were left.
      this.#leftSteps -= steps - budget.left
      this.#schedule()
    }
    const units = (steps - budget.left) / STEPS_PER_UNIT
    if (!isDone) return [false, reader.meter?.spend(units)]
    // The reader may owe for it. Its next message waits.
    reader.meter?.charge(units)
    return [true, undefined]
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#isScheduled = false
    this.#leftSteps = STEPS_PER_TURN
    while (this.#leftSteps > 0) {
      const job = this.#next()
      if (job === undefined) return
      try {
        const [isDone, isPaid] = job.reader.isClosed ? [true] : this.#take(job.slice, job.reader)
        if (isDone) job.resolve()
        else this.#goOn(job, isPaid)
      } catch (error) {
        job.reject(error)
      }
    }
    if (this.#waiting.size > 0) this.#schedule()
  }

  #next(): Job | undefined {
    const [first] = this.#waiting
    if (first === undefined) return undefined
    const [reader, jobs] = first
    this.#waiting.delete(reader)
    const job = jobs.shift()
    if (jobs.length > 0) this.#waiting.set(reader, jobs)
    return job
  }
}
