/** Sequences that follow each other, published under tags that follow each other. */
interface Run {
  readonly firstTag: number
  readonly firstSequence: number
  count: number
}

/**
 * Which message a delivery tag stands for: the broker counts the messages of a channel from 1, a node its own over all channels. Kept as
 * runs, which are few: a message costs an addition.
 */
export class Confirms {
  /** In order; without what was settled up to a tag. */
  #runs: Run[] = []
  #tag = 0
  /** Up to here everything is settled. */
  #settledTag = 0

  /** Messages that were published and are not settled up to their tag. */
  get openCount(): number {
    return this.#tag - this.#settledTag
  }

  /** A message is published. */
  published(sequence: number): void {
    const tag = ++this.#tag
    const last = this.#runs.at(-1)
    if (last !== undefined && last.firstSequence + last.count === sequence) last.count++
    else this.#runs.push({ firstTag: tag, firstSequence: sequence, count: 1 })
  }

  /** Everything up to a tag is settled. */
  settle(tag: number): void {
    this.#settledTag = Math.max(this.#settledTag, tag)
    while (this.#runs[0] !== undefined && this.#runs[0].firstTag + this.#runs[0].count - 1 <= tag) this.#runs.shift()
  }

  /** The message of a tag; `undefined` for one that is not of this channel or settled for long. */
  sequenceOf(tag: number): number | undefined {
    for (const { firstTag, firstSequence, count } of this.#runs) {
      if (tag < firstTag) return undefined
      if (tag < firstTag + count) return firstSequence + tag - firstTag
    }
    return undefined
  }

  /** The messages that are not settled up to and with a tag. */
  *sequencesUpTo(tag: number): Generator<number> {
    for (let at = this.#settledTag + 1; at <= tag; at++) {
      const sequence = this.sequenceOf(at)
      if (sequence !== undefined) yield sequence
    }
  }
}
