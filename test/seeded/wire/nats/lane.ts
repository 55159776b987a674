interface Job {
  readonly dueMs: number
  readonly run: () => void
}

/** Work of the server that is done in its order, each after a delay of its own. Without delays it is done at once. */
export class Lane {
  readonly #delayMs: () => number
  #jobs: Job[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(delayMs: () => number) {
    this.#delayMs = delayMs
  }

  push(run: () => void): void {
    const delayMs = this.#delayMs()
    if (delayMs === 0 && this.#jobs.length === 0) run()
    else {
      this.#jobs.push({ dueMs: Math.max(Date.now() + delayMs, this.#jobs.at(-1)?.dueMs ?? 0), run })
      this.#wait()
    }
  }

  /** The process has died. */
  clear(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#jobs = []
  }

  #wait(): void {
    const [first] = this.#jobs
    if (this.#timer !== undefined || first === undefined) return
    this.#timer = setTimeout(() => this.#work(), Math.max(0, first.dueMs - Date.now()))
  }

  #work(): void {
    this.#timer = undefined
    const nowMs = Date.now()
    const jobs = this.#jobs
    while (jobs === this.#jobs && jobs[0] !== undefined && jobs[0].dueMs <= nowMs) jobs.shift()?.run()
    this.#wait()
  }
}
