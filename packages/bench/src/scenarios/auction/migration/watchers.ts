import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { RunError } from '../../../exit-codes.js'
import type { WatcherCommand, WatcherData, WatcherEvent, WatcherResult } from './messages.js'

/** One thread plays this many clients by default. */
const CLIENTS_PER_THREAD = 200
const READY_TIMEOUT_MS = 60_000
const ANSWER_TIMEOUT_MS = 30_000

type EventOf<Type extends WatcherEvent['type']> = Extract<WatcherEvent, { readonly type: Type }>

/** The threads that play the clients of a migration. */
export class Watchers {
  readonly failed: Promise<never>
  readonly #threads: readonly Worker[]
  readonly #started: Promise<EventOf<'ready'>[]>
  #isStopping = false

  /** @param items Item of each client. */
  constructor(items: readonly number[], { urls, hasTls }: Pick<WatcherData, 'urls' | 'hasTls'>) {
    const threadCount = Math.min(availableParallelism(), Math.ceil(items.length / CLIENTS_PER_THREAD))
    const placeOf = (index: number) => Math.floor((index * items.length) / threadCount)
    this.#threads = Array.from({ length: threadCount }, (_, index) => {
      const firstClient = placeOf(index)
      const data: WatcherData = { items: items.slice(firstClient, placeOf(index + 1)), firstClient, urls, hasTls }
      return new Worker(new URL('./watcher-worker.js', import.meta.url), { workerData: data })
    })
    this.failed = Promise.race(this.#threads.map((thread) => this.#failureOf(thread)))
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
    this.#started = this.#all('ready', READY_TIMEOUT_MS)
    this.#started.catch(() => undefined) // `ready` tells.
  }

  /** Resolves when every client has its listen. */
  async ready(): Promise<EventOf<'ready'>[]> {
    return await this.#started
  }

  /** Counts latencies from this number on. */
  begin(firstSeq: number): void {
    this.#post({ type: 'begin', firstSeq })
  }

  /** Clients that are live and have received this number. */
  async doneCount(lastSeq: number): Promise<number> {
    const answers = this.#all('answer', ANSWER_TIMEOUT_MS)
    this.#post({ type: 'ask', lastSeq })
    return (await answers).reduce((sum, { doneCount }) => sum + doneCount, 0)
  }

  /** Takes the counts of every thread and closes the clients. */
  async finish(): Promise<WatcherResult[]> {
    this.#isStopping = true
    const results = this.#all('result', ANSWER_TIMEOUT_MS)
    this.#post({ type: 'finish' })
    return (await results).map(({ result }) => result)
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#threads.map((thread) => thread.terminate()))
  }

  #post(command: WatcherCommand): void {
    for (const thread of this.#threads) thread.postMessage(command)
  }

  /** The next event of this type of every thread. */
  async #all<Type extends WatcherEvent['type']>(type: Type, timeoutMs: number): Promise<EventOf<Type>[]> {
    const stopped = new AbortController()
    const { signal } = stopped
    const late = new Promise<never>((_, reject) => {
      const timer = setTimeout(
        () => reject(new RunError(`the clients gave no '${type}' within ${timeoutMs / 1_000} s`)),
        timeoutMs,
      )
      signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
    })
    const events = this.#threads.map(
      (thread) =>
        new Promise<EventOf<Type>>((resolve) => {
          const take = (event: WatcherEvent) => {
            if (event.type === type) resolve(event as EventOf<Type>)
          }
          thread.on('message', take)
          signal.addEventListener('abort', () => thread.off('message', take), { once: true })
        }),
    )
    try {
      return await Promise.race([this.failed, late, Promise.all(events)])
    } finally {
      stopped.abort()
    }
  }

  #failureOf(thread: Worker): Promise<never> {
    return new Promise((_, reject) => {
      thread.once('error', (cause) => reject(new RunError(`the clients failed: ${cause.message}`, { cause })))
      thread.once('exit', () => {
        if (!this.#isStopping) reject(new RunError('a thread of clients ended before its time'))
      })
    })
  }
}
