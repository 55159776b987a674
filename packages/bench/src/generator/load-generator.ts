import { MessageChannel, Worker } from 'node:worker_threads'
import { RunError } from '../exit-codes.js'
import type { KeyPlanOptions } from '../load/key-plan.js'
import { type LiveCounter, LiveCounters } from './live-counters.js'
import type { Load, LoadTotals } from './load.js'
import type { ClientAccess, LoadCommand, LoadEvent, LoadResult, LoadWorkerData, PacerData } from './messages.js'
import { PacerControl } from './pacer-control.js'
import type { Window } from './receiver.js'

export interface LoadOptions {
  readonly planOptions: KeyPlanOptions
  readonly messageSizeBytes: number
  readonly urls: readonly string[]
  readonly workerCount: number
  /** Default: anybody, below `bench`. */
  readonly access?: ClientAccess
}

export const OPEN_ACCESS: ClientAccess = { keyPrefix: 'bench' }

/** The worker threads that play the clients, and the pacer that tells them when to send. */
export class LoadGenerator implements Load {
  readonly #workers: readonly LoadThread[]
  readonly #pacer: Worker
  readonly #pacerControl = new PacerControl()
  readonly failed: Promise<never>

  constructor(options: LoadOptions) {
    const { planOptions, urls, messageSizeBytes, workerCount, access = OPEN_ACCESS } = options
    const paced: PacerData['workers'][number][] = []
    this.#workers = Array.from({ length: workerCount }, (_, index) => {
      const firstClient = Math.floor((index * planOptions.clientCount) / workerCount)
      const endClient = Math.floor(((index + 1) * planOptions.clientCount) / workerCount)
      const { port1, port2 } = new MessageChannel()
      const pending = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
      paced.push({ port: port1, pending, firstClient, endClient })
      const counters = new LiveCounters()
      const wakeUps = { port: port2, pending }
      return new LoadThread({
        planOptions,
        messageSizeBytes,
        firstClient,
        endClient,
        urls,
        access,
        counters: counters.buffer,
        wakeUps,
      })
    })
    this.#pacer = new Worker(new URL('./pacer.js', import.meta.url), {
      workerData: { planOptions, workers: paced, control: this.#pacerControl.buffer } satisfies PacerData,
      transferList: paced.map(({ port }) => port),
    })
    const pacerFailed = new Promise<never>((_, reject) => this.#pacer.once('error', reject))
    this.failed = Promise.race([...this.#workers.map((worker) => worker.failed), pacerFailed])
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
  }

  /** Resolves when every client is connected and every listen confirmed. */
  async ready(): Promise<void> {
    await Promise.race([this.failed, Promise.all(this.#workers.map((worker) => worker.ready))])
  }

  /** Starts to send at the warm-up's start, `window.startUs` minus the warm-up. */
  async begin(window: Window): Promise<void> {
    for (const worker of this.#workers) worker.post({ type: 'begin', window })
    this.#pacerControl.start(window.startUs)
  }

  /** Of the whole process, which does nothing else meanwhile. */
  async cpuSeconds(): Promise<number> {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1_000_000
  }

  get totals(): LoadTotals {
    const sum = (field: LiveCounter) => this.#workers.reduce((total, { counters }) => total + counters.read(field), 0)
    return {
      connectedCount: sum('connectedCount'),
      publishedCount: sum('publishedCount'),
      deliveredCount: sum('deliveredCount'),
      arrivedCount: sum('arrivedCount'),
      isSendingDone: sum('isSendingDone') === this.#workers.length,
    }
  }

  async finish(): Promise<LoadResult[]> {
    for (const worker of this.#workers) worker.post({ type: 'finish' })
    return await Promise.race([this.failed, Promise.all(this.#workers.map((worker) => worker.result))])
  }

  async stop(): Promise<void> {
    this.#pacerControl.stop()
    await Promise.all([this.#pacer.terminate(), ...this.#workers.map((worker) => worker.stop())])
  }
}

/** The main thread's end of one load worker. */
class LoadThread {
  readonly counters: LiveCounters
  readonly ready: Promise<void>
  readonly result: Promise<LoadResult>
  readonly failed: Promise<never>
  readonly #worker: Worker

  constructor(data: LoadWorkerData) {
    this.counters = new LiveCounters(data.counters)
    const worker = new Worker(new URL('./load-worker.js', import.meta.url), {
      workerData: data,
      transferList: [data.wakeUps.port],
    })
    this.#worker = worker
    let hasResult = false
    this.ready = new Promise((resolve) => {
      worker.on('message', (event: LoadEvent) => {
        if (event.type === 'ready') resolve()
      })
    })
    this.result = new Promise((resolve) => {
      worker.on('message', (event: LoadEvent) => {
        if (event.type !== 'result') return
        hasResult = true
        resolve(event.result)
      })
    })
    this.failed = new Promise((_, reject) => {
      worker.once('error', (cause) => reject(new RunError(`a load worker failed: ${cause.message}`, { cause })))
      worker.once('exit', () => {
        if (!hasResult) reject(new RunError('a load worker ended before its time'))
      })
    })
    this.failed.catch(() => undefined) // Raced in LoadGenerator; here only the rejection is held.
  }

  post(command: LoadCommand): void {
    this.#worker.postMessage(command)
  }

  async stop(): Promise<void> {
    await this.#worker.terminate()
  }
}
