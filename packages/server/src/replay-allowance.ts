/** Of the capacity, what must be free for another page to be worth sending. */
const MIN_FREE_SHARE = 1 / 4

/**
 * How many bytes a connection may still be sent as replay. Replays are sent at once, into an outbox that is limited: a
 * reconnect with many long replays would overflow it, be closed as a slow consumer, and reconnect to the same. So half
 * of the outbox is for replays, and what was taken comes back within a second, by when a healthy client has read it.
 */
export class ReplayAllowance {
  readonly #capacityBytes: number
  #takenBytes = 0
  #atMs = 0

  /** @param capacityBytes What may be taken at once, and again per second. */
  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes
  }

  /**
   * Takes bytes, if there are as many.
   * @param isForced Takes them anyway; they have to come back before there are more.
   */
  take(byteCount: number, nowMs: number, isForced = false): boolean {
    this.#regain(nowMs)
    if (!isForced && this.#takenBytes + byteCount > this.#capacityBytes) return false
    this.#takenBytes += byteCount
    return true
  }

  /** Time until a page may be sent again; 0 for now. */
  waitMs(nowMs: number): number {
    this.#regain(nowMs)
    const excessBytes = this.#takenBytes - this.#capacityBytes * (1 - MIN_FREE_SHARE)
    return Math.max(0, Math.ceil((excessBytes * 1_000) / this.#capacityBytes))
  }

  #regain(nowMs: number): void {
    const regainedBytes = (this.#capacityBytes * Math.max(0, nowMs - this.#atMs)) / 1_000
    this.#takenBytes = Math.max(0, this.#takenBytes - regainedBytes)
    this.#atMs = nowMs
  }
}
