import { SubscriptionCover, type SubscriptionCoverOptions } from '../remote/cover.js'
import { GlobBudget } from './glob-budget.js'

/** The subscriptions at one Redis: those that the bound patterns need, with a bounded number of globs. */
export class RedisSubscriptions {
  readonly #cover: SubscriptionCover
  /** Broader patterns that replace many globs. Each promise resolves to whether Redis allows the pattern. */
  readonly #broader = new Map<string, Promise<boolean>>()
  readonly #budget = new GlobBudget({
    broaden: (pattern) => {
      // If it is refused, or the link is lost, the narrower ones stay.
      const isBound = this.#cover.bind(pattern).then(
        () => true,
        () => false,
      )
      this.#broader.set(pattern, isBound)
    },
    narrow: (pattern) => void this.#narrow(pattern),
  })

  constructor({ subscribe, unsubscribe }: Omit<SubscriptionCoverOptions, 'subscriptionsOf'>) {
    this.#cover = new SubscriptionCover({ subscriptionsOf: subscriptionPatternsOf, subscribe, unsubscribe })
  }

  /**
   * Resolves when everything that the pattern matches arrives.
   * @throws {WebMQError} `E_BROKER_REFUSED` when Redis does not allow it; the pattern is then not bound.
   */
  async bind(pattern: string): Promise<void> {
    for (const glob of globsOf(pattern)) this.#budget.add(glob)
    try {
      await this.#cover.bind(pattern)
    } catch (error) {
      for (const glob of globsOf(pattern)) this.#budget.delete(glob)
      throw error
    }
  }

  async unbind(pattern: string): Promise<void> {
    const unbound = this.#cover.unbind(pattern)
    for (const glob of globsOf(pattern)) this.#budget.delete(glob)
    await unbound
  }

  async #narrow(pattern: string): Promise<void> {
    const isBound = this.#broader.get(pattern)
    this.#broader.delete(pattern)
    // Fails when the link is lost, or a narrower pattern is refused: then the broader one stays.
    if (await isBound) await this.#cover.unbind(pattern).catch(() => undefined)
  }
}

function globsOf(pattern: string): readonly string[] {
  return subscriptionPatternsOf(pattern).filter((each) => !isExact(each))
}

/** A glob with more `*`s costs Redis too much to match. */
const MAX_GLOB_STARS = 6
/** Each `#` that may stand for no word doubles the subscriptions. */
const MAX_OPTIONAL_HASHES = 2

/** A word, or a run of wildcards. */
type Part = string | { readonly stars: number; readonly hasHash: boolean }

/**
 * The subscriptions that Redis needs for a pattern, each as a subscription pattern: a pattern of the keys that it brings.
 *
 * The `*` of a glob matches dots too. So a run of wildcards brings its least number of words and more: `a.*` needs the
 * subscription `a.*.#`. A `#` may also stand for no word, which needs a subscription of its own: `a.#` needs `a` and
 * `a.*.#`. A pattern with too many wildcards needs one subscription for everything that begins and ends alike.
 */
function subscriptionPatternsOf(pattern: string): readonly string[] {
  const parts = partsOf(pattern)
  const optionalCount = parts.filter((part) => typeof part !== 'string' && part.stars === 0).length
  const starCount = parts.reduce((count, part) => count + (typeof part === 'string' ? 0 : Math.max(1, part.stars)), 0)
  if (starCount > MAX_GLOB_STARS || optionalCount > MAX_OPTIONAL_HASHES) return [coarsePattern(parts)]
  let patterns: (readonly string[])[] = [[]]
  for (const part of parts) {
    if (typeof part === 'string') patterns = patterns.map((words) => [...words, part])
    else {
      const some = [...new Array<string>(Math.max(1, part.stars)).fill('*'), '#']
      const none = part.stars === 0 ? patterns : []
      patterns = [...none, ...patterns.map((words) => [...words, ...some])]
    }
  }
  // No key is without a word.
  return patterns.filter((words) => words.length > 0).map((words) => words.join('.'))
}

/** Whether a subscription pattern is one key, for SUBSCRIBE. */
export function isExact(pattern: string): boolean {
  return !/[*#]/.test(pattern)
}

/** The glob of a subscription pattern, for PSUBSCRIBE. */
export function globOf(pattern: string): string {
  return pattern
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

/** Everything that begins and ends alike. Only for more than one wildcard, so that at least one word is between. */
function coarsePattern(parts: readonly Part[]): string {
  const isWord = (part: Part): part is string => typeof part === 'string'
  const first = parts.findIndex((part) => !isWord(part))
  const last = parts.findLastIndex((part) => !isWord(part))
  return [...parts.slice(0, first), '*', '#', ...parts.slice(last + 1)].join('.')
}
