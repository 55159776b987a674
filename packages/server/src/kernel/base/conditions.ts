import { deferred } from './deferred.js'
import { within } from './within.js'

/** Waits for conditions that events bring about. */
export class Conditions {
  readonly #looks = new Set<() => void>()
  #isOver = false

  /** Resolves when the condition holds now or at a {@link look}, after the time, or after {@link end}. */
  async until(condition: () => boolean, timeoutMs: number): Promise<void> {
    if (condition() || this.#isOver) return
    const isMet = deferred()
    const look = () => {
      if (condition() || this.#isOver) isMet.resolve()
    }
    this.#looks.add(look)
    await within(isMet.promise, timeoutMs)
    this.#looks.delete(look)
  }

  look(): void {
    for (const look of this.#looks) look()
  }

  /** Nobody waits any more. */
  end(): void {
    this.#isOver = true
    this.look()
  }
}
