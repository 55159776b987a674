import type { EpochRecord } from './log-record.js'

/**
 * Which epoch a log is in, told by its own records: RabbitMQ does not identify a queue, and a queue that is
 * deleted and declared again begins at offset 0 again. All nodes read the same records and come to the same result.
 *
 * - A log that is read from its very beginning has the candidate of its first epoch record. Nothing else counts: nodes
 *   that have not noticed the end of the log before still name its epoch for a moment.
 * - A log whose beginning has aged out has the epoch that the first message or record names, or else the first
 *   candidate.
 * - A record that denies the epoch begins another, its candidate.
 */
export class LogEpoch {
  readonly #isWhole: boolean
  readonly #denied = new Set<string>()
  name: string | undefined
  /** Whether only a denial can still change it. */
  isKnown: boolean
  /** Offset in the queue where the epoch begins, as far as it is visible. */
  sinceOffset: number

  /**
   * @param firstOffset Of the queue, from 0: where reading begins.
   * @param name If it is already known.
   */
  constructor(firstOffset: number, name?: string) {
    this.#isWhole = firstOffset === 0
    this.sinceOffset = firstOffset
    this.name = name
    this.isKnown = name !== undefined
  }

  named(epoch: string): void {
    if (this.isKnown || this.#isWhole || this.#denied.has(epoch)) return
    this.name = epoch
    this.isKnown = true
  }

  recorded({ epoch, candidate, denies }: EpochRecord, offset: number): void {
    if (epoch !== undefined) this.named(epoch)
    if (denies !== undefined) this.#denied.add(denies)
    if (candidate === undefined) return
    if (this.name === undefined) {
      this.name = candidate
      this.isKnown = this.#isWhole
    } else if (denies !== undefined && (denies === this.name || !this.isKnown)) {
      this.name = candidate
      this.sinceOffset = offset
    }
  }
}
