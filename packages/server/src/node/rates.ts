/** Counters that only grow. */
export interface RateCounts {
  readonly received: number
  readonly sent: number
}

/** Per second. */
export interface Rates {
  readonly receivedPerSecond: number
  readonly sentPerSecond: number
}

/** Those who ask more often share one reading: over a shorter time a rate says little. */
const MIN_INTERVAL_MS = 1_000

/** Turns counters into rates since the previous reading or, without one, since the start. Costs nothing when unread. */
export class RateReader {
  readonly #read: () => RateCounts
  readonly #now: () => number
  #last: RateCounts = { received: 0, sent: 0 }
  #lastMs: number
  #rates: Rates = { receivedPerSecond: 0, sentPerSecond: 0 }

  constructor(read: () => RateCounts, now: () => number = () => performance.now()) {
    this.#read = read
    this.#now = now
    this.#lastMs = now()
  }

  rates(): Rates {
    const nowMs = this.#now()
    const seconds = (nowMs - this.#lastMs) / 1_000
    if (nowMs - this.#lastMs < MIN_INTERVAL_MS) return this.#rates
    const counts = this.#read()
    this.#rates = {
      receivedPerSecond: perSecond(counts.received - this.#last.received, seconds),
      sentPerSecond: perSecond(counts.sent - this.#last.sent, seconds),
    }
    this.#last = counts
    this.#lastMs = nowMs
    return this.#rates
  }
}

function perSecond(count: number, seconds: number): number {
  return Math.round((Math.max(0, count) / seconds) * 10) / 10
}
