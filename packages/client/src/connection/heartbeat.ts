import { MAX_TIMER_MS } from '../options.js'
import { nowMs } from './clock.js'

/** Answers take less. */
const UNANSWERED_MS = 3_000
/** With {@link UNANSWERED_MS} below the default of `ackTimeoutMs`. */
const UNANSWERED_TIMEOUT_MS = 5_000

/** The shortest interval: a server that asks for less would get as many pings as the processor makes. */
const MIN_INTERVAL_MS = 1_000

/** The heartbeat's access to its connection. */
export interface HeartbeatContext {
  sendPing(): void
  /** Nothing arrived in time after a ping. */
  onTimeout(): void
}

/**
 * Detects a connection that is dead but not closed, after a laptop slept or a router lost its state.
 *
 * If nothing was sent, or nothing received, for the interval, it sends `ping`; also if nothing arrives for a while after a
 * message, so that a publish on a dead network joins the queue before its time is over. If then nothing at all arrives in time,
 * it reports a timeout. Silence alone does not count, because timers of a hidden page fire late.
 */
export class Heartbeat {
  readonly #context: HeartbeatContext
  readonly #intervalMs: number
  readonly #timeoutMs: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #sentAtMs = nowMs()
  #aliveAtMs = nowMs()
  #isWaiting = false
  /** When the first message was sent since the last one that has arrived. */
  #unansweredSinceMs = Infinity
  #dueAtMs = 0

  constructor(intervalMs: number, timeoutMs: number, context: HeartbeatContext) {
    // 0: the server wants no heartbeat [P-9.2]; probes still work.
    this.#intervalMs = intervalMs ? Math.max(intervalMs, MIN_INTERVAL_MS) : Infinity
    this.#timeoutMs = timeoutMs
    this.#context = context
    this.#check()
  }

  /** The client has sent a message. @param isAnswered Whether the server answers it. */
  sent(isAnswered = false): void {
    this.#sentAtMs = nowMs()
    if (!isAnswered || this.#isWaiting || this.#unansweredSinceMs < Infinity) return
    this.#unansweredSinceMs = this.#sentAtMs
    if (this.#sentAtMs + UNANSWERED_MS < this.#dueAtMs) this.#check()
  }

  /** A message has arrived: the connection is alive. */
  alive(): void {
    this.#aliveAtMs = nowMs()
    this.#unansweredSinceMs = Infinity
    if (this.#isWaiting) {
      this.#isWaiting = false
      this.#check()
    }
  }

  /** Sends a ping now, with a shorter timeout: after a wake-up the app should not wait for the usual interval. */
  probe(timeoutMs: number): void {
    this.#ping(Math.min(timeoutMs, this.#timeoutMs))
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #check(): void {
    clearTimeout(this.#timer)
    const silentAtMs = Math.min(this.#sentAtMs, this.#aliveAtMs) + this.#intervalMs
    const unansweredAtMs = this.#unansweredSinceMs + UNANSWERED_MS
    this.#dueAtMs = Math.min(silentAtMs, unansweredAtMs)
    const dueMs = this.#dueAtMs - nowMs()
    if (dueMs <= 0)
      this.#ping(silentAtMs < unansweredAtMs ? this.#timeoutMs : Math.min(UNANSWERED_TIMEOUT_MS, this.#timeoutMs))
    else if (dueMs <= MAX_TIMER_MS) this.#timer = setTimeout(() => this.#check(), dueMs)
  }

  #ping(timeoutMs: number): void {
    clearTimeout(this.#timer)
    this.#isWaiting = true
    this.#timer = setTimeout(this.#context.onTimeout, timeoutMs)
    this.#context.sendPing()
  }
}
