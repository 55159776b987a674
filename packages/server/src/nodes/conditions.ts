import type { Deadlines } from '../base/deadlines.js'

/** Waits for conditions that messages of other nodes bring about. */
export class Conditions {
  readonly #deadlines: Pick<Deadlines, 'set' | 'clear'>
  readonly #now: () => number
  readonly #looks = new Set<() => void>()
  #isOver = false

  constructor(deadlines: Pick<Deadlines, 'set' | 'clear'>, now: () => number) {
    this.#deadlines = deadlines
    this.#now = now
  }

  /** Resolves when the condition holds at a {@link look}, after the time, or after {@link end}. */
  until(condition: () => boolean, timeoutMs: number): Promise<void> {
    if (condition() || this.#isOver) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        this.#deadlines.clear(deadline)
        this.#looks.delete(look)
        resolve()
      }
      const look = () => {
        if (condition() || this.#isOver) end()
      }
      const deadline = this.#deadlines.set(this.#now() + timeoutMs, end)
      this.#looks.add(look)
    })
  }

  look(): void {
    for (const look of [...this.#looks]) look()
  }

  /** Nobody waits any more. */
  end(): void {
    this.#isOver = true
    this.look()
  }
}
