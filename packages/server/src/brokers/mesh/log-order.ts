const MIN_CAPACITY = 1_024

/**
 * Beside each message that a node's log holds: whose it is, and which of theirs. 12 bytes per message, in a ring that grows with the log;
 * and the message ids of the newest.
 */
export class LogOrder {
  readonly #maxIds: number
  readonly #ids: (string | undefined)[] = []
  #origins = new Uint32Array(MIN_CAPACITY)
  #sequences = new Float64Array(MIN_CAPACITY)
  #heldAfter = 0
  #last = 0

  /** @param maxIds Messages whose ids are kept. */
  constructor(maxIds: number) {
    this.#maxIds = maxIds
  }

  /** Offset of the last message. */
  get last(): number {
    return this.#last
  }

  /** Everything after this offset is held. */
  get heldAfter(): number {
    return this.#heldAfter
  }

  /** Adds the message at the next offset. */
  append(origin: number, sequence: number, messageId: string | undefined): void {
    if (this.#last - this.#heldAfter === this.#origins.length) this.#grow()
    const at = ++this.#last & (this.#origins.length - 1)
    this.#origins[at] = origin
    this.#sequences[at] = sequence
    if (this.#maxIds > 0) this.#ids[this.#last % this.#maxIds] = messageId
  }

  /** Index of the origin of a message that is held. */
  originAt(offset: number): number {
    return this.#origins[offset & (this.#origins.length - 1)] as number
  }

  sequenceAt(offset: number): number {
    return this.#sequences[offset & (this.#sequences.length - 1)] as number
  }

  /** Id of a message; `undefined` when it has none, or is too old. */
  idAt(offset: number): string | undefined {
    return offset > this.#last - this.#maxIds ? this.#ids[offset % this.#maxIds] : undefined
  }

  /** The messages up to an offset are gone. */
  drop(offset: number, onGone: (origin: number, sequence: number) => void): void {
    while (this.#heldAfter < offset) {
      this.#heldAfter++
      onGone(this.originAt(this.#heldAfter), this.sequenceAt(this.#heldAfter))
    }
  }

  #grow(): void {
    const origins = new Uint32Array(this.#origins.length * 2)
    const sequences = new Float64Array(origins.length)
    for (let offset = this.#heldAfter + 1; offset <= this.#last; offset++) {
      origins[offset & (origins.length - 1)] = this.originAt(offset)
      sequences[offset & (origins.length - 1)] = this.sequenceAt(offset)
    }
    this.#origins = origins
    this.#sequences = sequences
  }
}
