import type { Position } from '../../ports/broker.js'

/** Bounds of a {@link DedupeWindow}. */
export interface DedupeWindowOptions {
  /** Time for which an id is remembered. */
  readonly windowMs: number
  /** Ids that are remembered at most; the oldest go first. */
  readonly maxIds: number
}

/** Remembers the ids of accepted messages for a time, and at most so many, with the position each was given. */
export class DedupeWindow {
  readonly #windowMs: number
  readonly #maxIds: number
  readonly #positions = new Map<string, Position | undefined>()
  /**
   * The ids in the order they came and the times they came at; those before `#head` are forgotten. Kept beside the map
   * because taking the oldest entry out of a Map walks over every entry deleted before it.
   */
  #ids: string[] = []
  #timesMs: number[] = []
  #head = 0

  constructor(options: DedupeWindowOptions) {
    this.#windowMs = options.windowMs
    this.#maxIds = options.maxIds
  }

  /** Ids that are remembered now. */
  get size(): number {
    return this.#positions.size
  }

  /** Whether the id was remembered within the window. */
  has(messageId: string, nowMs: number): boolean {
    this.#forget(nowMs)
    return this.#positions.has(messageId)
  }

  /** The position that the message with this id was given. */
  positionOf(messageId: string): Position | undefined {
    return this.#positions.get(messageId)
  }

  /** Remembers an id that is not remembered yet. Cost: O(1), amortised. */
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
