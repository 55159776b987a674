/** What a heartbeat may touch. */
export interface HeartbeatContext {
  sendPing(): void
  /** Nothing was heard although an answer was due. */
  onTimeout(): void
}

/**
 * Finds out that a connection is dead although nobody closed it (a laptop that slept, a router that forgot): when it
 * was quiet for the interval, in either direction, it sends `ping`; when then nothing at all is heard in time, it says
 * so. Only an unanswered ping counts, never mere silence: the timers of a hidden page fire late.
 */
export class Heartbeat {
  readonly #context: HeartbeatContext
  readonly #intervalMs: number
  readonly #timeoutMs: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #sentAtMs = Date.now()
  #heardAtMs = Date.now()
  #isWaiting = false

  constructor(intervalMs: number, timeoutMs: number, context: HeartbeatContext) {
    this.#intervalMs = intervalMs
    this.#timeoutMs = timeoutMs
    this.#context = context
    this.#schedule()
  }

  /** Something was sent. */
  sent(): void {
    this.#sentAtMs = Date.now()
  }

  /** Something was heard: the connection is alive. */
  heard(): void {
    this.#heardAtMs = Date.now()
    if (this.#isWaiting) {
      this.#isWaiting = false
      this.#schedule()
    }
  }

  /** Asks now, and allows less time for the answer: after a wake-up the app should not wait for the usual interval. */
  probe(timeoutMs: number): void {
    this.#ping(Math.min(timeoutMs, this.#timeoutMs))
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#intervalMs <= 0) return
    const dueMs = Math.min(this.#sentAtMs, this.#heardAtMs) + this.#intervalMs - Date.now()
    this.#timer = setTimeout(() => {
      const quietMs = Date.now() - Math.min(this.#sentAtMs, this.#heardAtMs)
      if (quietMs >= this.#intervalMs) this.#ping(this.#timeoutMs)
      else this.#schedule()
    }, dueMs)
  }

  #ping(timeoutMs: number): void {
    clearTimeout(this.#timer)
    this.#isWaiting = true
    this.#timer = setTimeout(this.#context.onTimeout, timeoutMs)
    this.#context.sendPing()
  }
}
