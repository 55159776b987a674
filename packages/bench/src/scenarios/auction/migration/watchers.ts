import { availableParallelism } from 'node:os'
import { ClientThreads } from '../../../generator/client-threads.js'
import type { WatcherCommand, WatcherData, WatcherEvent, WatcherResult } from './messages.js'

/** One thread plays this many clients by default. */
const CLIENTS_PER_THREAD = 200
const READY_TIMEOUT_MS = 60_000
const ANSWER_TIMEOUT_MS = 30_000

/** The threads that play the clients of a migration. */
export class Watchers {
  readonly failed: Promise<never>
  readonly #threads: ClientThreads<WatcherCommand, WatcherEvent>
  readonly #started: ReturnType<typeof this.ready>

  /** @param items Item of each client. */
  constructor(items: readonly number[], { urls, hasTls }: Pick<WatcherData, 'urls' | 'hasTls'>) {
    const threadCount = Math.min(availableParallelism(), Math.ceil(items.length / CLIENTS_PER_THREAD))
    const placeOf = (index: number) => Math.floor((index * items.length) / threadCount)
    const data = Array.from({ length: threadCount }, (_, index): WatcherData => {
      const firstClient = placeOf(index)
      return { items: items.slice(firstClient, placeOf(index + 1)), firstClient, urls, hasTls }
    })
    this.#threads = new ClientThreads(new URL('./watcher-worker.js', import.meta.url), data)
    this.failed = this.#threads.failed
    this.#started = this.#threads.next('ready', READY_TIMEOUT_MS)
    this.#started.catch(() => undefined) // `ready` tells.
  }

  /** Resolves when every client has its listen. */
  async ready(): Promise<Extract<WatcherEvent, { readonly type: 'ready' }>[]> {
    return await this.#started
  }

  /** Counts latencies from this number on. */
  begin(firstSeq: number): void {
    this.#threads.post({ type: 'begin', firstSeq })
  }

  /** Clients that are live and have received this number. */
  async doneCount(lastSeq: number): Promise<number> {
    const answers = this.#threads.next('answer', ANSWER_TIMEOUT_MS)
    this.#threads.post({ type: 'ask', lastSeq })
    return (await answers).reduce((sum, { doneCount }) => sum + doneCount, 0)
  }

  /** Takes the counts of every thread and closes the clients. */
  async finish(): Promise<WatcherResult[]> {
    const results = await this.#threads.finish({ type: 'finish' }, 'result', ANSWER_TIMEOUT_MS)
    return results.map(({ result }) => result)
  }

  async stop(): Promise<void> {
    await this.#threads.stop()
  }
}
