import { deferred } from '../../../kernel/base/deferred.js'

/** Events of one request. */
const MAX_BATCH_COUNT = 100
const MIN_RETRY_MS = 250
const MAX_RETRY_MS = 10_000

export interface TellerContext {
  /** Resolves when the other nodes know the facts, so that one of them tells these when this one crashes. */
  ready(patterns: readonly string[]): Promise<void>
  /** Resolves to whether the backend has taken the present facts of these patterns. */
  tell(patterns: readonly string[]): Promise<void>
  onFailed(error: unknown, waitingCount: number): void
  readonly random?: () => number
}

/** Tells the backend of patterns: the newest fact of each, one request at a time, again until it takes them. */
export class Teller {
  readonly #context: TellerContext
  readonly #waiting = new Set<string>()
  #isTelling = false
  #isStopped = false
  #wake: (() => void) | undefined

  constructor(context: TellerContext) {
    this.#context = context
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  has(pattern: string): boolean {
    return this.#waiting.has(pattern)
  }

  /** The pattern has a new fact. */
  add(pattern: string): void {
    this.#waiting.add(pattern)
    if (!this.#isTelling && !this.#isStopped) void this.#run()
  }

  /** Another node tells of the pattern, or it was told. */
  remove(pattern: string): void {
    this.#waiting.delete(pattern)
  }

  stop(): void {
    this.#isStopped = true
    this.#wake?.()
  }

  async #run(): Promise<void> {
    this.#isTelling = true
    for (let failedCount = 0; this.#waiting.size > 0 && !this.#isStopped; ) {
      const batch = [...this.#waiting].slice(0, MAX_BATCH_COUNT)
      try {
        await this.#context.ready(batch)
        if (this.#isStopped) break
        await this.#context.tell(batch)
        failedCount = 0
      } catch (error) {
        this.#context.onFailed(error, this.#waiting.size)
        await this.#pause(Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** failedCount++))
      }
    }
    this.#isTelling = false
  }

  #pause(maxMs: number): Promise<void> {
    const { promise, resolve } = deferred<void>()
    const { random = Math.random } = this.#context
    const timer = setTimeout(resolve, (0.5 + random() / 2) * maxMs)
    timer.unref()
    this.#wake = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }
}
