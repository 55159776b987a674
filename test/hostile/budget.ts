import { setTimeout as sleep } from 'node:timers/promises'

/** Most that one hostile client may send. */
export interface BudgetLimits {
  readonly operationsPerSecond: number
  readonly bytesPerSecond: number
}

/** A client that was late may catch up this much. */
const BURST_S = 0.02
/** Shortest pause: a timer per message would cost the attacker more of the processor than its messages do. */
const MIN_PAUSE_MS = 10

/**
 * Paces one client, so that an attack measures the server and not the share of the processor that the attacker gets.
 * A token bucket for operations and one for bytes; a large message may put its bucket in debt.
 */
export class Budget {
  readonly #limits: BudgetLimits
  readonly #signal: AbortSignal
  #operations = 0
  #bytes = 0
  #lastMs = performance.now()

  constructor(limits: BudgetLimits, signal: AbortSignal) {
    this.#limits = limits
    this.#signal = signal
  }

  /** Resolves when this may be sent. @throws the reason of the signal when the attack is over. */
  async spend(bytes: number, operations = 1): Promise<void> {
    this.#signal.throwIfAborted()
    this.#operations -= operations
    this.#bytes -= bytes
    if (this.#waitMs() <= 0) return
    this.#refill()
    for (let waitMs = this.#waitMs(); waitMs > 0; waitMs = this.#waitMs()) {
      await sleep(Math.max(MIN_PAUSE_MS, waitMs), undefined, { signal: this.#signal })
      this.#refill()
    }
  }

  #refill(): void {
    const { operationsPerSecond, bytesPerSecond } = this.#limits
    const nowMs = performance.now()
    const seconds = (nowMs - this.#lastMs) / 1_000
    this.#lastMs = nowMs
    this.#operations = Math.min(operationsPerSecond * BURST_S, this.#operations + seconds * operationsPerSecond)
    this.#bytes = Math.min(bytesPerSecond * BURST_S, this.#bytes + seconds * bytesPerSecond)
  }

  /** Milliseconds until both buckets are out of debt. */
  #waitMs(): number {
    const { operationsPerSecond, bytesPerSecond } = this.#limits
    return Math.ceil(Math.max(-this.#operations / operationsPerSecond, -this.#bytes / bytesPerSecond) * 1_000)
  }
}
