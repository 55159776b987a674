import { type Deferred, deferred } from '../../ports/deferred.js'
import { within } from '../../ports/within.js'

/**
 * Reads that wait until this node's copy of the log reaches an offset. A client that comes from another node may know a
 * position that this node has not read yet.
 */
export class LogArrivals {
  readonly #offsets = new Map<Deferred<void>, number>()

  /** Resolves when the copy has the offset, when another log begins, or after `timeoutMs`. The caller checks which. */
  async until(offset: number, timeoutMs: number): Promise<void> {
    const arrival = deferred()
    this.#offsets.set(arrival, offset)
    await within(arrival.promise, timeoutMs)
    this.#offsets.delete(arrival)
  }

  /** The copy is complete up to this offset. Free when no read waits. */
  arrived(offset: number): void {
    if (this.#offsets.size === 0) return
    for (const [arrival, wanted] of this.#offsets) if (wanted <= offset) arrival.resolve()
  }

  /** Another log has begun, or the node stops: the offsets that reads wait for will not come. */
  giveUp(): void {
    for (const arrival of this.#offsets.keys()) arrival.resolve()
  }
}
