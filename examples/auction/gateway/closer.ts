import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from './store'

/** Another gateway may have opened an item that ends sooner. */
const MAX_PAUSE_MS = 250
const BATCH_SIZE = 100

/**
 * Closes items when they end. The times are in Redis and every gateway looks at them, so an item closes however many
 * gateways have ended; the first that asks does it.
 */
export class Closer {
  readonly #store: Store
  readonly #stopping = new AbortController()
  #running = Promise.resolve()
  #error: unknown

  constructor(store: Store) {
    this.#store = store
  }

  /** Why nothing is closed at present. */
  get error(): unknown {
    return this.#error
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      let pauseMs = MAX_PAUSE_MS
      try {
        const nextMs = await this.#store.closeDue(BATCH_SIZE)
        if (nextMs !== undefined) pauseMs = Math.min(Math.max(1, Math.ceil(nextMs - Date.now())), MAX_PAUSE_MS)
        this.#error = undefined
      } catch (error) {
        if (this.#error === undefined) console.error('Nothing closes:', error)
        this.#error = error
      }
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }
}
