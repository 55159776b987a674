/** After a rest this much of a second may pass at once, so that a late timer costs no capacity. */
const BURST_MS = 100

interface Waiting<Item> {
  readonly item: Item
  readonly dueMs: number
}

/**
 * One direction of a network: items pass in the order of their coming, at a limited rate, each after a delay, and
 * none while it stands still. Time is an argument, of a monotonic clock in milliseconds.
 */
export class PacedLine<Item> {
  readonly #bytesPerMs: number
  readonly #waiting: Waiting<Item>[] = []
  /** When the last item had passed, and when it was due at the other end; by the clock of the line. */
  #passedMs = Number.NEGATIVE_INFINITY
  #dueMs = Number.NEGATIVE_INFINITY
  #delayMs = 0
  #stoodStillMs = 0
  #frozenAtMs: number | undefined

  /** @param bytesPerSecond `Infinity`: as many as come. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerMs = bytesPerSecond / 1_000
  }

  push(item: Item, byteCount: number, nowMs: number): void {
    const atMs = this.#clockMs(nowMs)
    this.#passedMs = Math.max(this.#passedMs, atMs - BURST_MS) + byteCount / this.#bytesPerMs
    // Not before the one ahead, which may have come while the delay was longer.
    this.#dueMs = Math.max(this.#dueMs, this.#passedMs + this.#delayMs, atMs + this.#delayMs)
    this.#waiting.push({ item, dueMs: this.#dueMs })
  }

  /** The items that are at the other end by now, in order. */
  take(nowMs: number): Item[] {
    const atMs = this.#clockMs(nowMs)
    const isFrozen = this.#frozenAtMs !== undefined
    const next = this.#waiting.findIndex(({ dueMs }) => dueMs > atMs)
    const count = isFrozen ? 0 : next === -1 ? this.#waiting.length : next
    return this.#waiting.splice(0, count).map(({ item }) => item)
  }

  /** From now on. */
  delay(delayMs: number): void {
    this.#delayMs = delayMs
  }

  freeze(nowMs: number): void {
    this.#frozenAtMs ??= nowMs
  }

  /** Goes on where it stood still: nothing has passed meanwhile. */
  thaw(nowMs: number): void {
    if (this.#frozenAtMs !== undefined) this.#stoodStillMs += nowMs - this.#frozenAtMs
    this.#frozenAtMs = undefined
  }

  /** A clock that stands while the line does. */
  #clockMs(nowMs: number): number {
    return (this.#frozenAtMs ?? nowMs) - this.#stoodStillMs
  }
}
