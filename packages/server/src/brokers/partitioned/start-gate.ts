import { deferred } from '../../ports/deferred.js'

/** Runs at most so many tasks at once; the others wait, oldest first. */
export class StartGate {
  readonly #maxRunning: number
  readonly #waiting: (() => void)[] = []
  #runningCount = 0

  constructor(maxRunning: number) {
    this.#maxRunning = maxRunning
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#runningCount >= this.#maxRunning) {
      const turn = deferred()
      this.#waiting.push(() => turn.resolve())
      await turn.promise
    } else this.#runningCount++
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      // It takes the place over.
      if (next === undefined) this.#runningCount--
      else next()
    }
  }
}
