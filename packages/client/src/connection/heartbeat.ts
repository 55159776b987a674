import { MAX_TIMER_MS } from '../options.js'

/** What a heartbeat may touch. */
export interface HeartbeatContext {
  sendPing(): void
  /** Nothing has arrived although an answer was due. */
  onTimeout(): void
}

/**
 * Finds out that a connection is dead although nobody closed it (a laptop that slept, a router that forgot): when it
 * was quiet for the interval, in either direction, it sends `ping`; when then nothing at all arrives in time, it says
 * so. Only an unanswered ping counts, never mere silence: the timers of a hidden page fire late.
 */
export class Heartbeat {
  readonly #context: HeartbeatContext
  readonly #intervalMs: number
  readonly #timeoutMs: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #sentAtMs = Date.now()
  #aliveAtMs = Date.now()
  #isWaiting = false

  constructor(intervalMs: number, timeoutMs: number, context: HeartbeatContext) {
    // 0: the server wants no heartbeat [P-9.2]; probes go on.
    this.#intervalMs = intervalMs || Number.POSITIVE_INFINITY
    this.#timeoutMs = timeoutMs
    this.#context = context
    this.#check()
  }

  /** Something was sent. */
  sent(): void {
    this.#sentAtMs = Date.now()
  }

  /** Something has arrived: the connection is alive. */
  alive(): void {
    this.#aliveAtMs = Date.now()
    if (this.#isWaiting) {
      this.#isWaiting = false
      this.#check()
    }
  }

  /** Asks now, and allows less time for the answer: after a wake-up the app should not wait for the usual interval. */
  probe(timeoutMs: number): void {
    this.#ping(Math.min(timeoutMs, this.#timeoutMs))
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #check(): void {
    clearTimeout(this.#timer)
    const dueMs = Math.min(this.#sentAtMs, this.#aliveAtMs) + this.#intervalMs - Date.now()
    if (dueMs <= 0) this.#ping(this.#timeoutMs)
    else if (dueMs <= MAX_TIMER_MS) this.#timer = setTimeout(() => this.#check(), dueMs)
  }

  #ping(timeoutMs: number): void {
    clearTimeout(this.#timer)
    this.#isWaiting = true
    this.#timer = setTimeout(this.#context.onTimeout, timeoutMs)
    this.#context.sendPing()
  }
}
