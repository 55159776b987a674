import type { KeyPlanOptions } from '../load/key-plan.js'
import { ClientThreads } from './client-threads.js'
import { type LiveCounter, LiveCounters } from './live-counters.js'
import type { Load, LoadTotals } from './load.js'
import type { ClientAccess, LoadCommand, LoadEvent, LoadResult, LoadWorkerData } from './messages.js'
import type { Window } from './receiver.js'

/** Settings of the load. */
export interface LoadOptions {
  readonly planOptions: KeyPlanOptions
  readonly messageSizeBytes: number
  readonly urls: readonly string[]
  readonly workerCount: number
  /** Default: anybody, below `bench`. */
  readonly access?: ClientAccess
}

export const OPEN_ACCESS: ClientAccess = { keyPrefix: 'bench' }

/** The worker threads that play the clients with the client library. */
export class LoadGenerator implements Load {
  readonly failed: Promise<never>
  readonly #threads: ClientThreads<LoadCommand, LoadEvent>
  readonly #counters: readonly LiveCounters[]
  readonly #ready: Promise<unknown>

  constructor({ workerCount, access = OPEN_ACCESS, ...options }: LoadOptions) {
    const { clientCount } = options.planOptions
    const placeOf = (index: number) => Math.floor((index * clientCount) / workerCount)
    this.#counters = Array.from({ length: workerCount }, () => new LiveCounters())
    const data = this.#counters.map(
      ({ buffer }, index): LoadWorkerData => ({
        ...options,
        firstClient: placeOf(index),
        endClient: placeOf(index + 1),
        access,
        counters: buffer,
      }),
    )
    this.#threads = new ClientThreads(new URL('./load-worker.js', import.meta.url), data)
    this.failed = this.#threads.failed
    this.#ready = this.#threads.next('ready')
    this.#ready.catch(() => undefined) // `ready` tells.
  }

  async ready(): Promise<void> {
    await this.#ready
  }

  async begin(window: Window): Promise<void> {
    this.#threads.post({ type: 'begin', window })
  }

  /** Of the whole process, which does nothing else meanwhile. */
  async cpuSeconds(): Promise<number> {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1_000_000
  }

  get totals(): LoadTotals {
    const sum = (field: LiveCounter) => this.#counters.reduce((total, counters) => total + counters.read(field), 0)
    return {
      connectedCount: sum('connectedCount'),
      publishedCount: sum('publishedCount'),
      deliveredCount: sum('deliveredCount'),
      arrivedCount: sum('arrivedCount'),
      isSendingDone: sum('isSendingDone') === this.#counters.length,
    }
  }

  async finish(): Promise<LoadResult[]> {
    return (await this.#threads.finish({ type: 'finish' }, 'result')).map(({ result }) => result)
  }

  async stop(): Promise<void> {
    await this.#threads.stop()
  }
}
