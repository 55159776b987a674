/** The kind of an arrival. `reordered` counts as delivered, but came after a later message of its publisher and key. */
export type DeliveryVerdict = 'delivered' | 'reordered' | 'duplicate'

/**
 * Distinguishes first arrivals, duplicates and late arrivals of one receiving client, exactly.
 *
 * Messages of one publisher to one key are numbered 0, 1, 2 …, so a jump names the missing ones. An earlier number is
 * either one of the missing (late) or a second copy.
 * Memory: 4 bytes x slots x publishers, and one set entry for each message that is missing at the moment.
 */
export class DeliveryTracker {
  readonly #publisherCount: number
  readonly #nextSequences: Int32Array
  readonly #missing = new Map<number, Set<number>>()

  /** @param slotCount Keys that the client listens to; a slot is a key's place among them. */
  constructor(slotCount: number, publisherCount: number) {
    this.#publisherCount = publisherCount
    this.#nextSequences = new Int32Array(slotCount * publisherCount)
  }

  record(slot: number, publisher: number, keySequence: number): DeliveryVerdict {
    const pair = slot * this.#publisherCount + publisher
    const next = this.#nextSequences[pair] ?? 0
    if (keySequence >= next) {
      if (keySequence > next) this.#expectLater(pair, next, keySequence)
      this.#nextSequences[pair] = keySequence + 1
      return 'delivered'
    }
    return this.#missing.get(pair)?.delete(keySequence) === true ? 'reordered' : 'duplicate'
  }

  #expectLater(pair: number, from: number, to: number): void {
    let missing = this.#missing.get(pair)
    if (missing === undefined) {
      missing = new Set()
      this.#missing.set(pair, missing)
    }
    for (let sequence = from; sequence < to; sequence++) missing.add(sequence)
  }
}
