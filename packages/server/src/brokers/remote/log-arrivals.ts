import { type Deferred, deferred } from '../../ports/deferred.js'
import { within } from '../../ports/within.js'

/**
 * Reads that wait until a node's copy of the log has reached an offset. Nodes follow the log side by side, so a client that comes from
 * another node may know a position that has not come to this one yet.
 */
export class LogArrivals {
  readonly #offsets = new Map<Deferred<void>, number>()

  /** Resolves when the offset has been reached, when the log has begun anew, or after `timeoutMs`. */
  async until(offset: number, timeoutMs: number): Promise<void> {
    const arrival = deferred()
    this.#offsets.set(arrival, offset)
    await within(arrival.promise, timeoutMs)
    this.#offsets.delete(arrival)
  }

  /** The copy has reached this offset. Cost: nothing when no read waits. */
  reached(offset: number): void {
    if (this.#offsets.size === 0) return
    for (const [arrival, wanted] of this.#offsets) if (wanted <= offset) arrival.resolve()
  }

  /** The log has begun anew, or ends: no offset that a read waits for will come. */
  giveUp(): void {
    for (const arrival of this.#offsets.keys()) arrival.resolve()
  }
}
