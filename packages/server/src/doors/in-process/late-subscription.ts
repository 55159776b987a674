import type { LocalSubscription } from '../../kernel/routing/local-listeners.js'

/** A subscription in the process that may begin before its server runs. */
export class LateSubscription implements LocalSubscription {
  readonly pattern: string
  readonly ready: Promise<void>
  #isWanted = true
  #end: (() => void) | undefined

  /** @param begin Begins it once the server runs, and resolves with a function that ends it. */
  constructor(pattern: string, begin: Promise<() => Promise<() => void>>) {
    this.pattern = pattern
    this.ready = begin.then((begin) => this.#begin(begin))
    // Callers may ignore `ready`; a rejection that nobody handles must not crash the process.
    this.ready.catch(() => undefined)
  }

  close(): void {
    this.#isWanted = false
    this.#end?.()
    this.#end = undefined
  }

  [Symbol.dispose](): void {
    this.close()
  }

  async #begin(begin: () => Promise<() => void>): Promise<void> {
    if (!this.#isWanted) return
    const end = await begin()
    if (this.#isWanted) this.#end = end
    else end()
  }
}
