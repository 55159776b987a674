import { deferred } from './deferred.js'
import { within } from './within.js'

/** A wait that ends later than by this share of its time says nothing: this process stood still, and events may wait to be read. */
const LATE_SHARE = 1 / 4
/** So often is a wait begun again that ended late. */
const MAX_LATE = 4

/** Waits for conditions that events bring about. */
export class Conditions {
  readonly #looks = new Set<() => void>()
  #isOver = false

  /**
   * Resolves when the condition holds now or at a {@link look}, after the time, or after {@link end}. Time in which this
   * process stood still does not count, up to five times of it.
   */
  async until(condition: () => boolean, timeoutMs: number): Promise<void> {
    if (condition() || this.#isOver) return
    const isMet = deferred()
    const look = () => {
      if (condition() || this.#isOver) isMet.resolve()
    }
    this.#looks.add(look)
    for (let lateCount = 0; lateCount <= MAX_LATE; lateCount++) {
      const endMs = performance.now() + timeoutMs
      if (await within(isMet.promise, timeoutMs)) break
      if (performance.now() - endMs <= timeoutMs * LATE_SHARE) break
    }
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
