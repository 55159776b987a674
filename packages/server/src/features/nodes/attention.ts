/** A node that has not looked for so long stood still. Half of the time after which others give its tasks away. */
const STILL_MS = 1_000
const LOOK_MS = STILL_MS / 2

export interface AttentionContext {
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
  /** How long the lease of this node is valid at others. */
  readonly validMs: number
  /** A new term has begun. */
  readonly changed: () => void
}

/**
 * Numbers the terms of a node. A term ends when the node stood still, or when others may have taken it for gone. What was sent
 * to it in an earlier term may have been given to another node since, and is not for it any more.
 */
export class Attention {
  readonly #context: AttentionContext
  #term = 1
  #lookedMs: number
  /** When the last lease was sent that the broker has accepted. */
  #leasedMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(context: AttentionContext) {
    this.#context = context
    this.#lookedMs = this.#leasedMs = context.now()
  }

  /** The present term, from 1: a new one if the last has ended. Cost: one look at the clock. */
  look(): number {
    const { now, validMs, changed } = this.#context
    const nowMs = now()
    const hasEnded = nowMs - this.#lookedMs > STILL_MS || nowMs - this.#leasedMs > validMs
    this.#lookedMs = nowMs
    if (hasEnded) {
      this.#term++
      // Nobody has heard of the new term before now.
      this.#leasedMs = nowMs
      changed()
    }
    return this.#term
  }

  start(): void {
    this.#lookedMs = this.#leasedMs = this.#context.now()
    this.#timer ??= setInterval(() => this.look(), LOOK_MS).unref()
  }

  /** The broker has accepted a lease. If that took too long, others may have taken the node for gone before. */
  leased(sentAtMs: number): void {
    this.look()
    this.#leasedMs = Math.max(this.#leasedMs, sentAtMs)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
