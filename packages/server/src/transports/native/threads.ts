/** Counts down the engine's threads to none, for those who wait for that. */
export class ThreadCountdown {
  readonly #resolvers: (() => void)[] = []
  #count = 0

  begin(count: number): void {
    this.#count = count
  }

  oneLess(): void {
    if (this.#count > 0) this.#count--
    if (this.#count === 0) for (const resolve of this.#resolvers.splice(0)) resolve()
  }

  /** Resolves when no thread is left to count down. */
  async over(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => this.#resolvers.push(resolve))
  }
}
