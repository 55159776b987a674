import { AwakeClock } from './awake-clock.js'
import { deferred } from './deferred.js'
import { within } from './within.js'

/** Waits for conditions that events bring about. */
export class Conditions {
  readonly #looks = new Set<() => void>()
  readonly #clock = new AwakeClock(() => this.#looks.size > 0)
  #isOver = false

  /**
   * Resolves when the condition holds now or at a {@link look}, after the time, or after {@link end}. Time in which this
   * process stands still does not count.
   */
  async until(condition: () => boolean, timeoutMs: number): Promise<void> {
    if (condition() || this.#isOver) return
    const isMet = deferred()
    const look = () => {
      if (condition() || this.#isOver) isMet.resolve()
    }
    this.#looks.add(look)
    this.#clock.start()
    const awakeMs = () => this.#clock.at(performance.now())
    const endMs = awakeMs() + timeoutMs
    for (let leftMs = timeoutMs; leftMs > 0; leftMs = endMs - awakeMs()) if (await within(isMet.promise, leftMs)) break
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
