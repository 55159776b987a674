/** More `*`s in one glob cost Redis too much to match, and are not made. */
const MAX_GLOB_STARS = 6
/** Each `#` that may stand for no word doubles the subscriptions. */
const MAX_OPTIONAL_HASHES = 2

/** A word, or a run of wildcards. */
type Part = string | { readonly stars: number; readonly hasHash: boolean }

/**
 * What Redis must be subscribed to for a pattern, each as the pattern of the keys that it brings. A `*` of a glob matches dots too, so a
 * run of wildcards brings any number of words from its least on (`a.*` brings `a.*.#`); and a `#` that stands for no word needs a
 * subscription of its own (`a.#` needs `a` and `a.*.#`). Patterns with many wildcards bring what is like them at the ends.
 */
export function redisReaches(pattern: string): readonly string[] {
  const parts = partsOf(pattern)
  const optionalCount = parts.filter((part) => typeof part !== 'string' && part.stars === 0).length
  const starCount = parts.reduce((count, part) => count + (typeof part === 'string' ? 0 : Math.max(1, part.stars)), 0)
  if (starCount > MAX_GLOB_STARS || optionalCount > MAX_OPTIONAL_HASHES) return [coarseReach(parts)]
  let reaches: (readonly string[])[] = [[]]
  for (const part of parts) {
    if (typeof part === 'string') reaches = reaches.map((words) => [...words, part])
    else {
      const some = [...new Array<string>(Math.max(1, part.stars)).fill('*'), '#']
      const none = part.stars === 0 ? reaches : []
      reaches = [...none, ...reaches.map((words) => [...words, ...some])]
    }
  }
  // No key is without a word.
  return reaches.filter((words) => words.length > 0).map((words) => words.join('.'))
}

/** Whether a reach is one key, for SUBSCRIBE. */
export function isExact(reach: string): boolean {
  return !/[*#]/.test(reach)
}

/** The glob of a reach, for PSUBSCRIBE. */
export function globOf(reach: string): string {
  return reach
    .split('.')
    .filter((word) => word !== '#')
    .map((word) => (word === '*' ? word : word.replace(/[[\]?*\\^]/g, '\\$&')))
    .join('.')
}

function partsOf(pattern: string): Part[] {
  const parts: Part[] = []
  for (const word of pattern.split('.')) {
    if (word !== '*' && word !== '#') {
      parts.push(word)
      continue
    }
    const last = parts.at(-1)
    const run = last === undefined || typeof last === 'string' ? { stars: 0, hasHash: false } : last
    if (run === last) parts.pop()
    parts.push({ stars: run.stars + Number(word === '*'), hasHash: run.hasHash || word === '#' })
  }
  return parts
}

/** All that begins and ends alike. Only for more than one wildcard, so that there is at least one word between. */
function coarseReach(parts: readonly Part[]): string {
  const isWord = (part: Part): part is string => typeof part === 'string'
  const first = parts.findIndex((part) => !isWord(part))
  const last = parts.findLastIndex((part) => !isWord(part))
  return [...parts.slice(0, first), '*', '#', ...parts.slice(last + 1)].join('.')
}
