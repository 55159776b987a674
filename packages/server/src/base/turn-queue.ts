/**
 * Starts at most so many tasks per turn of the event loop. The others wait, oldest first, so that the messages of
 * connections come in between.
 */
export class TurnQueue<Task> {
  readonly #tasksPerTurn: number
  readonly #start: (task: Task) => void
  readonly #maxWaiting: number
  /** The first `#goneCount` are gone. */
  #waiting: Task[] = []
  #goneCount = 0
  #room: number
  #isScheduled = false

  /**
   * @param start MUST NOT throw.
   * @param maxWaiting One more, and the oldest is forgotten; default: no limit.
   */
  constructor(tasksPerTurn: number, start: (task: Task) => void, maxWaiting = Number.POSITIVE_INFINITY) {
    this.#maxWaiting = maxWaiting
    this.#tasksPerTurn = tasksPerTurn
    this.#room = tasksPerTurn
    this.#start = start
  }

  /** Number of waiting tasks. */
  get size(): number {
    return this.#waiting.length - this.#goneCount
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

  /** Forgets the waiting tasks. */
  clear(): void {
    this.#waiting = []
    this.#goneCount = 0
  }

  readonly #turn = (): void => {
    this.#room = this.#tasksPerTurn
    this.#isScheduled = this.size > 0
    if (!this.#isScheduled) return
    setImmediate(this.#turn)
    while (this.#room > 0 && this.size > 0) this.#run(this.#next())
  }

  /** Removes the oldest waiting task. */
  #next(): Task {
    const task = this.#waiting[this.#goneCount++] as Task
    // Half of the list at a time, so that each task is moved once on average.
    if (this.#goneCount * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#goneCount)
      this.#goneCount = 0
    }
    return task
  }

  #run(task: Task): void {
    this.#room--
    this.#start(task)
  }
}
