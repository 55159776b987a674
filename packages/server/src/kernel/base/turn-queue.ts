import { atRest } from './at-rest.js'
import { NumberedQueue } from './numbered-queue.js'

export interface TurnLimits {
  readonly maxWaiting?: number
  /** Milliseconds. */
  readonly turnMs?: number
}

/**
 * Starts `tasksPerTurn` tasks per turn of the event loop, and more while all that they have begun has come to rest
 * within `turnMs`. The others wait, oldest first, so that the messages of connections come in between.
 */
export class TurnQueue<Task> {
  readonly #tasksPerTurn: number
  readonly #start: (task: Task) => void
  readonly #maxWaiting: number
  readonly #turnMs: number
  #turnEndMs = 0
  #waiting = new NumberedQueue<Task>()
  #room: number
  #isScheduled = false

  /**
   * @param start MUST NOT throw.
   * @param limits.maxWaiting One more, and the oldest is forgotten; default: no limit.
   * @param limits.turnMs Default: 0, a turn is over with its tasks.
   */
  constructor(tasksPerTurn: number, start: (task: Task) => void, limits: TurnLimits = {}) {
    this.#maxWaiting = limits.maxWaiting ?? Number.POSITIVE_INFINITY
    this.#turnMs = limits.turnMs ?? 0
    this.#tasksPerTurn = tasksPerTurn
    this.#room = tasksPerTurn
    this.#start = start
  }

  get size(): number {
    return this.#waiting.span
  }

  /** Starts a task: at once when none waits and this turn has room. */
  push(task: Task): void {
    if (!this.#isScheduled) {
      this.#isScheduled = true
      setImmediate(this.#turn)
    }
    if (this.size === 0 && this.#room > 0) this.#run(task)
    else {
      if (this.size >= this.#maxWaiting) this.#next()
      this.#waiting.push(task)
    }
  }

  /** Called by a task that has cost as much as several: as many fewer start in this turn. */
  charge(taskCount: number): void {
    this.#room -= taskCount
  }

  clear(): void {
    this.#waiting = new NumberedQueue()
  }

  readonly #turn = (): void => {
    this.#turnEndMs = performance.now() + this.#turnMs
    this.#part()
  }

  readonly #part = (): void => {
    this.#room = this.#tasksPerTurn
    this.#isScheduled = this.size > 0
    if (!this.#isScheduled) return
    while (this.#room > 0 && this.size > 0) this.#run(this.#next())
    if (performance.now() < this.#turnEndMs) atRest(this.#more)
    else setImmediate(this.#turn)
  }

  readonly #more = (): void => {
    if (performance.now() < this.#turnEndMs) this.#part()
    else setImmediate(this.#turn)
  }

  #next(): Task {
    return this.#waiting.take(this.#waiting.firstNumber) as Task
  }

  #run(task: Task): void {
    this.#room--
    this.#start(task)
  }
}
