/**
 * Whether `outer` matches every key that `inner` matches. Exact for all keys of [P-3.1], except that their length is
 * taken as unlimited. Both must be valid patterns; this function does not check them.
 *
 * Cost: O(words of outer x words of inner), at most 256 x 256 word comparisons.
 *
 * Why a greedy placement is exact: split `outer` at its `#`s into segments, and trim each segment to begin and end with
 * a literal. The trimmed `*`s next to a `#` are the least number of words of that gap. Place the segments from left to
 * right in the words of `inner`, each as early as possible, never across a `#` of `inner`. A `#` of `inner` counts as
 * no word.
 *
 * If all segments fit, every key of `inner` matches `outer` with the same placement, because more words in a gap do no
 * harm. If one does not fit, a counterexample exists. Take `inner`, and put an unused word for each `*`. Put nothing
 * for a `#` that the placement counted in a gap that is still too short. Put more unused words than `outer` has for
 * every other `#`. In that key no segment can stand further left than its place.
 */
export function contains(outer: string, inner: string): boolean {
  const outerPattern = parse(outer.split('.'))
  return withoutNonKeys(inner.split('.')).every((words) => covers(outerPattern, words))
}

/** A pattern without `#` has a head only; with at least one `#`, it has a `tail`. */
interface ParsedPattern {
  /** Words at the start. */
  readonly head: readonly string[]
  /** Runs that begin and end with a literal, in order, each at least `gap` words after the previous one. */
  readonly middle: readonly Segment[]
  /** Words at the end. */
  readonly tail?: Segment
}

interface Segment {
  readonly gap: number
  readonly words: readonly string[]
}

function parse(words: readonly string[]): ParsedPattern {
  const runs: string[][] = [[]]
  for (const word of words) {
    if (word === '#') runs.push([])
    else runs.at(-1)?.push(word)
  }
  const [head = [], ...rest] = runs
  if (rest.length === 0) return { head, middle: [] }
  const middle: Segment[] = []
  // A `*` beside a `#`, on either side, only raises the least number of words of the gap.
  let gap = trailingStars(head)
  const last = rest.length - 1
  for (const [index, run] of rest.entries()) {
    const start = run.findIndex((word) => word !== '*')
    if (start < 0) {
      gap += run.length
      continue
    }
    const stars = index === last ? 0 : trailingStars(run)
    const segment = { gap: gap + start, words: run.slice(start, run.length - stars) }
    if (index === last) return { head: withoutTrailingStars(head), middle, tail: segment }
    middle.push(segment)
    gap = stars
  }
  return { head: withoutTrailingStars(head), middle, tail: { gap, words: [] } }
}

function trailingStars(words: readonly string[]): number {
  return words.length - 1 - words.findLastIndex((word) => word !== '*')
}

function withoutTrailingStars(words: readonly string[]): readonly string[] {
  return words.slice(0, words.length - trailingStars(words))
}

/**
 * Rewrites patterns that would match texts that are not keys, since a key has at least one byte: `#` alone also matches
 * no word, and `#`s around one empty word match that word alone. Returns patterns that match the same keys.
 */
function withoutNonKeys(words: readonly string[]): readonly (readonly string[])[] {
  const rest = words.filter((word) => word !== '#')
  if (rest.length === 0) return [['*', '#']]
  if (rest.length > 1 || rest[0] !== '' || words.length === 1) return [words]
  const before = words[0] === '#' ? [['*', ...words]] : []
  const after = words.at(-1) === '#' ? [[...words, '*']] : []
  return [...before, ...after]
}

function covers(outer: ParsedPattern, inner: readonly string[]): boolean {
  const { head, middle, tail } = outer
  if (!fits(head, inner, 0)) return false
  if (tail === undefined) return head.length === inner.length
  const tailAt = inner.length - tail.words.length
  if (tailAt < head.length || !fits(tail.words, inner, tailAt)) return false
  let at = head.length
  for (const { gap, words } of middle) {
    at = skip(inner, at, gap)
    while (at + words.length <= tailAt && !fits(words, inner, at)) at++
    at += words.length
  }
  return skip(inner, at, tail.gap) <= tailAt
}

/** Whether the words of `outer`, none of them `#`, fit at `at`: a literal needs itself, a `*` any one word but `#`. */
function fits(outer: readonly string[], inner: readonly string[], at: number): boolean {
  return outer.every((word, index) => {
    const innerWord = inner[at + index]
    return innerWord !== undefined && innerWord !== '#' && (word === '*' || word === innerWord)
  })
}

/** Index after `count` words that are not `#`; beyond the end if there are fewer. */
function skip(inner: readonly string[], at: number, count: number): number {
  let left = count
  let next = at
  while (left > 0) {
    if (inner[next] !== '#') left--
    next++
  }
  return next
}
