import { deferred } from '../../base/deferred.js'

/** Counts the engine's threads down to none. */
export class ThreadCountdown {
  #over = deferred()
  #count = 0

  begin(count: number): void {
    this.#count = count
    this.#over = deferred()
  }

  oneLess(): void {
    if (this.#count > 0) this.#count--
    if (this.#count === 0) this.#over.resolve()
  }

  async over(): Promise<void> {
    if (this.#count > 0) await this.#over.promise
  }
}
