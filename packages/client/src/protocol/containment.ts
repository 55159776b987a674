/**
 * Whether every key that `inner` matches is also matched by `outer`: exact, for all keys that [P-3.1] allows except
 * that their length is taken as unlimited. Both must be valid patterns; nothing is checked here.
 *
 * Cost: O(words of outer x words of inner), that is at most 256 x 256 word comparisons.
 *
 * Why a greedy placement is exact. Write `outer` as segments between its `#`s, each cut down to begin and end with a
 * literal; what is cut off, the `*`s next to a `#`, is the least number of words of that gap. Place the segments from
 * left to right in the words of `inner`, each as early as possible, never across a `#` of `inner`, and count a `#` of
 * `inner` as no word. If all can be placed, any key of `inner` matches `outer` with that same placement, because more
 * words in a gap never hurt. If one cannot, there is a key that `outer` does not match: put an unused word for each `*`
 * of `inner`, nothing for a `#` that the placement counted in a gap still too short, and for every other `#` more
 * unused words than `outer` has. In that key no segment can stand further left than where it was placed.
 */
export function contains(outer: string, inner: string): boolean {
  const outerPattern = parse(outer.split('.'))
  return withoutNonKeys(inner.split('.')).every((words) => covers(outerPattern, words))
}

/** A pattern without `#` is its head alone; with at least one, `tail` is there. */
interface ParsedPattern {
  /** Words that stand at the start. */
  readonly head: readonly string[]
  /** Literal-bounded runs, in order, each at least `gap` words after what is before it. */
  readonly middle: readonly Segment[]
  /** Words that stand at the end. */
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
  // `*`s beside a `#` only say how many words there must be at least, on whichever side of it they stand.
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
 * `#` alone would also match no word at all, and `#` around one empty word that word alone: neither is a key, since a
 * key has at least one byte. Returns patterns that match the same keys and nothing else that matters.
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

/**
 * Whether `outer` words, none of which is `#`, stand at `at`: a literal needs itself, a `*` any one word, none a `#`.
 */
function fits(outer: readonly string[], inner: readonly string[], at: number): boolean {
  return outer.every((word, index) => {
    const innerWord = inner[at + index]
    return innerWord !== undefined && innerWord !== '#' && (word === '*' || word === innerWord)
  })
}

/** Position after `count` words that are no `#`; beyond the end when there are fewer. */
function skip(inner: readonly string[], at: number, count: number): number {
  let left = count
  let next = at
  while (left > 0) {
    if (inner[next] !== '#') left--
    next++
  }
  return next
}
