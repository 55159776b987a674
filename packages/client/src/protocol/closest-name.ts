/**
 * The candidate that is closest to a mistyped name; `undefined` when none is close. Ignores case, dashes and
 * underscores, so `max_payload` finds `maxPayload`.
 *
 * Cost: O(candidates × length²).
 */
export function closestName(name: string, candidates: Iterable<string>): string | undefined {
  let best: { readonly candidate: string; readonly distance: number } | undefined
  for (const candidate of candidates) {
    const distance = editDistance(normalize(name), normalize(candidate))
    // Up to a third wrong letters count as a typo; more make another word.
    if (distance > Math.max(1, Math.floor(candidate.length / 3))) continue
    if (best === undefined || distance < best.distance) best = { candidate, distance }
  }
  return best?.candidate ?? withWordsOf(name, candidates)
}

/** The first candidate with all words of a name in their order, so `maxPerAddress` finds `maxConnectionsPerAddress`. */
function withWordsOf(name: string, candidates: Iterable<string>): string | undefined {
  const words = name.slice(0, 64).split(/[-_.]|(?=[A-Z])/)
  if (words.length < 2) return undefined
  return [...candidates].find((candidate) => {
    const text = normalize(candidate)
    let at = 0
    return words.map(normalize).every((word) => {
      const found = text.indexOf(word, at)
      at = found + word.length
      return found >= 0
    })
  })
}

/** `, did you mean x?`, to append to an unknown name; empty when no candidate is close. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const closest = closestName(name, candidates)
  return closest === undefined ? '' : `, did you mean ${closest}?`
}

function normalize(name: string): string {
  return name.toLowerCase().replace(/[-_.]/g, '').slice(0, 64)
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      let distance = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      )
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        distance = Math.min(distance, (beforeLast[column - 2] ?? 0) + 1)
      }
      current.push(distance)
    }
    beforeLast = last
    last = current
  }
  return last[b.length] ?? 0
}
