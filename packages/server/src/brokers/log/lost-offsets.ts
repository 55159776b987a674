/** With more ranges, every position before the latest of them counts as lost. */
const MAX_RANGES = 1_000

/**
 * Offsets of messages that were given out and then lost by the broker. They are remembered when the log has moved on:
 * whoever has the state at one of them has values that nobody else has.
 */
export class LostOffsets {
  /** In order. An offset is lost if it is between the two. */
  #ranges: { readonly after: number; readonly before: number }[] = []
  #unknownBefore = 0

  /** @param after Not before that of an earlier call. */
  add(after: number, before: number): void {
    const last = this.#ranges.at(-1)
    if (last?.before === after) this.#ranges.splice(-1, 1, { after: last.after, before })
    else this.#ranges.push({ after, before })
    if (this.#ranges.length > MAX_RANGES) this.#unknownBefore = this.#ranges.shift()?.before ?? before
  }

  has(offset: number): boolean {
    return offset < this.#unknownBefore || this.#ranges.some(({ after, before }) => after < offset && offset < before)
  }
}
