/**
 * Whether there may be a key that both patterns match. Cost: words of the one x words of the other, and less when they
 * differ at the first words.
 * @param one Its words, as {@link trieWords} gives them.
 */
export function overlap(one: readonly string[], other: readonly string[]): boolean {
  // How many words of the other may be behind us, in rising order, when those of the one so far are.
  let reached = skipHashes(other, [0])
  for (const word of one) {
    const next: number[] = []
    if (word === '#') for (let at = reached[0] as number; at <= other.length; at++) next.push(at)
    else {
      for (const at of reached) {
        const beside = other[at]
        if (beside === '#' && next.at(-1) !== at) next.push(at)
        if (beside === '#' || beside === '*' || (beside !== undefined && (word === '*' || word === beside)))
          next.push(at + 1)
      }
    }
    reached = skipHashes(other, next)
    if (reached.length === 0) return false
  }
  return reached.at(-1) === other.length
}

/** A `#` may stand for no word. */
function skipHashes(words: readonly string[], places: readonly number[]): number[] {
  const all: number[] = []
  for (const place of places) {
    if (place <= (all.at(-1) ?? -1)) continue
    all.push(place)
    if (words[place] === '#') all.push(place + 1)
  }
  return all
}
