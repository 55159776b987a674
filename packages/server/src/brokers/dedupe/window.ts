import type { Position } from '../../ports/broker.js'

/** Bounds of a {@link DedupeWindow}. */
export interface DedupeWindowOptions {
  /** How long an id is remembered. */
  readonly windowMs: number
  /** Most ids to remember; the oldest go first. */
  readonly maxIds: number
}

/** Remembers ids of accepted messages and their positions, bounded in time and number. */
export class DedupeWindow {
  readonly #windowMs: number
  readonly #maxIds: number
  readonly #positions = new Map<string, Position | undefined>()
  /**
   * The ids in order of arrival, with `#timesMs`; those before `#head` are forgotten. A queue besides the map, because
   * finding the oldest entry of a Map walks over all entries deleted before it.
   */
  #ids: string[] = []
  #timesMs: number[] = []
  #head = 0

  constructor(options: DedupeWindowOptions) {
    this.#windowMs = options.windowMs
    this.#maxIds = options.maxIds
  }

  /** Number of remembered ids. */
  get size(): number {
    return this.#positions.size
  }

  /** Whether the id was remembered within the window. */
  has(messageId: string, nowMs: number): boolean {
    this.#forget(nowMs)
    return this.#positions.has(messageId)
  }

  /** Position of the message with this id. */
  positionOf(messageId: string): Position | undefined {
    return this.#positions.get(messageId)
  }

  /** Remembers a new id. Amortised O(1). */
  remember(messageId: string, position: Position | undefined, nowMs: number): void {
    if (this.#maxIds === 0 || this.#windowMs === 0) return
    if (this.#positions.size >= this.#maxIds) this.#forgetOldest()
    this.#positions.set(messageId, position)
    this.#ids.push(messageId)
    this.#timesMs.push(nowMs)
  }

  #forget(nowMs: number): void {
    const deadlineMs = nowMs - this.#windowMs
    while (this.#head < this.#ids.length && (this.#timesMs[this.#head] ?? 0) <= deadlineMs) this.#forgetOldest()
  }

  #forgetOldest(): void {
    const oldest = this.#ids[this.#head]
    if (oldest === undefined) return
    this.#positions.delete(oldest)
    this.#head++
    if (this.#head * 2 > this.#ids.length) {
      this.#ids = this.#ids.slice(this.#head)
      this.#timesMs = this.#timesMs.slice(this.#head)
      this.#head = 0
    }
  }
}
