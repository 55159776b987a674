import { Worker } from 'node:worker_threads'
import { RunError } from '../exit-codes.js'

/** Worker threads that play clients: each gets its data, takes commands and posts events. */
export class ClientThreads<Command, Event extends { readonly type: string }> {
  /** Rejects when a thread fails, or ends before {@link finish}; never resolves. */
  readonly failed: Promise<never>
  readonly #threads: readonly Worker[]
  #isEnding = false

  /** @param data Of each thread. @param onEvent Called for every event, with the number of its thread. */
  constructor(script: URL, data: readonly unknown[], onEvent?: (event: Event, thread: number) => void) {
    this.#threads = data.map((workerData) => new Worker(script, { workerData }))
    this.failed = Promise.race(this.#threads.map((thread) => this.#failureOf(thread)))
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
    if (onEvent === undefined) return
    for (const [index, thread] of this.#threads.entries()) {
      thread.on('message', (event: Event) => onEvent(event, index))
    }
  }

  post(command: Command): void {
    for (const thread of this.#threads) thread.postMessage(command)
  }

  /** The next event of this type of every thread. @param timeoutMs Absent: no limit. */
  async next<Type extends Event['type']>(type: Type, timeoutMs?: number): Promise<Extract<Event, { type: Type }>[]> {
    const stops: (() => void)[] = []
    const late = new Promise<never>((_, reject) => {
      if (timeoutMs === undefined) return
      const error = new RunError(`the clients gave no '${type}' within ${timeoutMs / 1_000} s`)
      const timer = setTimeout(() => reject(error), timeoutMs)
      stops.push(() => clearTimeout(timer))
    })
    const events = this.#threads.map(
      (thread) =>
        new Promise<Extract<Event, { type: Type }>>((resolve) => {
          const take = (event: Event) => {
            if (event.type === type) resolve(event as Extract<Event, { type: Type }>)
          }
          thread.on('message', take)
          stops.push(() => thread.off('message', take))
        }),
    )
    try {
      return await Promise.race([this.failed, late, Promise.all(events)])
    } finally {
      for (const stop of stops) stop()
    }
  }

  /** Posts the last command and takes the event that answers it; then the threads may end. */
  async finish<Type extends Event['type']>(command: Command, type: Type, timeoutMs?: number) {
    this.#isEnding = true
    const answers = this.next(type, timeoutMs)
    this.post(command)
    return await answers
  }

  /** Ends all threads at once. Idempotent. */
  async stop(): Promise<void> {
    this.#isEnding = true
    await Promise.all(this.#threads.map((thread) => thread.terminate()))
  }

  #failureOf(thread: Worker): Promise<never> {
    return new Promise((_, reject) => {
      thread.once('error', (cause) => reject(new RunError(`the clients failed: ${cause.message}`, { cause })))
      thread.once('exit', () => {
        if (!this.#isEnding) reject(new RunError('a thread of clients ended before its time'))
      })
    })
  }
}
