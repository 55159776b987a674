import type { LogMark } from './log-mark.js'

/**
 * Which epoch a log is in, as told by what stands in it: RabbitMQ has no name for the life of a queue, and offsets begin at 0 again when one is deleted
 * and declared anew. All nodes read the same, so they come to the same.
 *
 * - A log that is seen from its very beginning has the candidate of its first mark: nothing else in it counts, because nodes that have not noticed yet
 *   that the log before is gone go on to name its epoch for a moment.
 * - One whose beginning is gone has the epoch that the first message or mark in it names; without any, the first candidate.
 * - A mark that denies the epoch begins another, its candidate.
 */
export class LogLife {
  readonly #isWhole: boolean
  readonly #denied = new Set<string>()
  #epoch: string | undefined
  #isKnown: boolean
  #sinceOffset: number

  /**
   * @param firstOffset Of the queue, from 0: where reading begins.
   * @param epoch When it is known before.
   */
  constructor(firstOffset: number, epoch?: string) {
    this.#isWhole = firstOffset === 0
    this.#sinceOffset = firstOffset
    this.#epoch = epoch
    this.#isKnown = epoch !== undefined
  }

  get epoch(): string | undefined {
    return this.#epoch
  }

  /** Whether nothing but a denial changes it any more. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  /** Offset in the queue that the epoch begins at, as far as it can be seen. */
  get sinceOffset(): number {
    return this.#sinceOffset
  }

  /** A message names an epoch. */
  named(epoch: string): void {
    if (this.#isKnown || this.#isWhole || this.#denied.has(epoch)) return
    this.#epoch = epoch
    this.#isKnown = true
  }

  /** A mark stands at this offset of the queue. */
  marked({ epoch, candidate, denies }: LogMark, offset: number): void {
    if (epoch !== undefined) this.named(epoch)
    if (denies !== undefined) this.#denied.add(denies)
    if (candidate === undefined) return
    if (this.#epoch === undefined) {
      this.#epoch = candidate
      this.#isKnown = this.#isWhole
    } else if (denies !== undefined && (denies === this.#epoch || !this.#isKnown)) {
      this.#epoch = candidate
      this.#sinceOffset = offset
    }
  }
}
