import type { Position } from './broker.js'

/** Bounds of a {@link DedupeWindow}; 0 turns de-duplication off. */
export interface DedupeOptions {
  /** How long an id is remembered. */
  readonly dedupeWindowMs: number
  /** Most ids to remember; the oldest go first. */
  readonly dedupeMaxIds: number
}

/** Remembers ids of accepted messages and their positions, bounded in time and number. */
export class DedupeWindow {
  readonly #windowMs: number
  readonly #maxIds: number
  /** The number of each id, counted from the first ever remembered. */
  readonly #numbers = new Map<string, number>()
  /**
   * The ids in order of arrival, with `#timesMs` and `#positions`; those before `#head` are forgotten. A queue besides
   * the map, because finding the oldest entry of a Map walks over all entries deleted before it.
   */
  #ids: string[] = []
  #timesMs: number[] = []
  #positions: (Position | undefined)[] = []
  #head = 0
  /** Number of the first id of the queue. */
  #firstNumber = 0

  constructor({ dedupeWindowMs, dedupeMaxIds }: DedupeOptions) {
    this.#windowMs = dedupeWindowMs
    this.#maxIds = dedupeMaxIds
  }

  /** Whether the id was remembered within the window. */
  has(messageId: string, nowMs: number): boolean {
    this.#forget(nowMs)
    return this.#numbers.has(messageId)
  }

  positionOf(messageId: string): Position | undefined {
    const number = this.#numbers.get(messageId)
    return number === undefined ? undefined : this.#positions[number - this.#firstNumber]
  }

  /**
   * As {@link positionOf}, if the id is within the window. Forgets nothing: `nowMs` may be of another clock than the
   * times of {@link remember}.
   */
  positionWithin(messageId: string, nowMs: number): Position | undefined {
    const number = this.#numbers.get(messageId)
    if (number === undefined) return undefined
    const index = number - this.#firstNumber
    return (this.#timesMs[index] ?? 0) > nowMs - this.#windowMs ? this.#positions[index] : undefined
  }

  /** Remembers a new id. Amortised O(1). */
  remember(messageId: string, position: Position | undefined, nowMs: number): void {
    if (this.#maxIds === 0 || this.#windowMs === 0) return
    if (this.#numbers.size >= this.#maxIds) this.#forgetOldest()
    this.#numbers.set(messageId, this.#firstNumber + this.#ids.length)
    this.#ids.push(messageId)
    this.#timesMs.push(nowMs)
    this.#positions.push(position)
  }

  #forget(nowMs: number): void {
    const deadlineMs = nowMs - this.#windowMs
    while (this.#head < this.#ids.length && (this.#timesMs[this.#head] ?? 0) <= deadlineMs) this.#forgetOldest()
  }

  #forgetOldest(): void {
    const oldest = this.#ids[this.#head]
    if (oldest === undefined) return
    this.#numbers.delete(oldest)
    this.#head++
    if (this.#head * 2 > this.#ids.length) {
      this.#ids = this.#ids.slice(this.#head)
      this.#timesMs = this.#timesMs.slice(this.#head)
      this.#positions = this.#positions.slice(this.#head)
      this.#firstNumber += this.#head
      this.#head = 0
    }
  }
}
