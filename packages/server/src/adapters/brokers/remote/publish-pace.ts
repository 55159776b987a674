import { MAX_PENDING_MESSAGES } from '../dedupe/duplicate-filter.js'

/**
 * A broker that takes this share of the timeout for a message is too slow. Then no more messages may wait than it accepts in
 * that time, so that each is answered in time.
 */
const SLOW_SHARE = 1 / 8
/** Messages that may wait even then. Their pace says how many more. */
const MIN_WINDOW = 64

/** A message, or a bundle, that waits for the broker. */
export interface Paced {
  readonly messageCount: number
  /** Time of the node's own clock, which stands while the node does. */
  readonly sentAtMs: number
  /** Messages that the broker had accepted before this one was sent. */
  readonly acceptedBefore: number
}

/** How many messages may wait for a broker, by how fast it accepts them. */
export class PublishPace {
  readonly #slowMs: number
  /** Since when the link takes messages. What waited before says nothing about its pace. */
  #sinceMs = 0
  /** Messages that may wait; infinite while the broker is quick. */
  window = Number.POSITIVE_INFINITY

  /** @param timeoutMs From when a message is sent until its deadline. */
  constructor(timeoutMs: number) {
    this.#slowMs = timeoutMs * SLOW_SHARE
  }

  get isSlow(): boolean {
    return this.window !== Number.POSITIVE_INFINITY
  }

  begin(nowMs: number): void {
    this.#sinceMs = nowMs
  }

  /** The oldest message still waits. @param acceptedCount Messages that were accepted until now. */
  waits(oldest: Paced, acceptedCount: number, nowMs: number): void {
    if (this.#livedMs(oldest, nowMs) > this.#slowMs) this.#narrow(oldest, acceptedCount, nowMs)
  }

  /** A message was accepted. Twice as many may wait with every window that is accepted quickly. */
  accepted(message: Paced, acceptedCount: number, nowMs: number): void {
    if (this.#livedMs(message, nowMs) > this.#slowMs) {
      this.#narrow(message, acceptedCount, nowMs)
      return
    }
    this.window += message.messageCount
    if (this.window > MAX_PENDING_MESSAGES) this.window = Number.POSITIVE_INFINITY
  }

  #livedMs({ sentAtMs }: Paced, nowMs: number): number {
    return nowMs - Math.max(this.#sinceMs, sentAtMs)
  }

  /** As many may wait as are accepted in the time that is slow, at the pace of this message. */
  #narrow(message: Paced, acceptedCount: number, nowMs: number): void {
    const perMs = (acceptedCount - message.acceptedBefore) / this.#livedMs(message, nowMs)
    this.window = Math.max(MIN_WINDOW, Math.min(this.window, perMs * this.#slowMs))
  }
}
