import { SubscriptionCover, type SubscriptionCoverOptions } from 'webmq-server/brokers'

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

/**
 * Redis tries the globs of all nodes for each PUBLISH: 0.05 us for one that begins like `room.7.*`, 0.25 us for one
 * like `*.7`. A message that a node gets and does not want costs Redis and the node 2 us.
 */
const MAX_GLOBS = 64
/** A broader glob replaces at least this many, unless no stem has as many. */
const MIN_REPLACED = 16
/**
 * A broader glob that covers this few is dropped. Well below MIN_REPLACED, so that a single change does not flip it.
 */
const MAX_KEPT_APART = 8

interface Stem {
  readonly parent: Stem | undefined
  readonly words: readonly string[]
  readonly children: Map<string, Stem>
  /** Globs that were added here and below. */
  addedCount: number
  /** Subscriptions that these globs need while the stem is not broadened itself. */
  apartCount: number
  /** Subscriptions that these globs need now. */
  madeCount: number
  isBroadened: boolean
}

/** What a {@link GlobBudget} asks for, as subscription patterns. */
export interface GlobBudgetOptions {
  /** Subscribe to this pattern too: it contains many that were added. */
  broaden(pattern: string): void
  /** End that subscription: it contains few patterns by now. */
  narrow(pattern: string): void
}

/**
 * Keeps the number of a node's globs within a bound. When there are too many, one broader glob replaces those with a
 * common beginning. It brings unwanted messages too.
 *
 *     room.1.* … room.65.*   broaden('room.*.#')
 *     all but 8 are deleted  narrow('room.*.#')
 */
export class GlobBudget {
  readonly #options: GlobBudgetOptions
  readonly #root = createStem(undefined, [])

  constructor(options: GlobBudgetOptions) {
    this.#options = options
  }

  get madeCount(): number {
    return this.#root.madeCount
  }

  add(glob: string): void {
    let stem = this.#root
    for (const word of headOf(glob)) {
      const child = stem.children.get(word) ?? createStem(stem, [...stem.words, word])
      stem.children.set(word, child)
      stem = child
    }
    count(stem, 1)
    if (this.#root.madeCount > MAX_GLOBS) this.#broaden()
  }

  delete(glob: string): void {
    let stem = this.#root
    for (const word of headOf(glob)) stem = stem.children.get(word) ?? stem
    count(stem, -1)
    for (let each: Stem | undefined = stem; each !== undefined; each = each.parent) {
      if (each.isBroadened && each.addedCount <= MAX_KEPT_APART) this.#narrow(each)
      if (each.addedCount === 0) each.parent?.children.delete(each.words.at(-1) ?? '')
    }
  }

  /** Broadens the longest stem that replaces enough. */
  #broaden(): void {
    let stem = this.#root
    for (let next: Stem | undefined = stem; next !== undefined; next = heaviestOf(stem.children.values())) {
      if (next !== this.#root && next.madeCount < MIN_REPLACED) break
      stem = next
    }
    stem.isBroadened = true
    count(stem, 0)
    this.#options.broaden(broadest(stem))
  }

  #narrow(stem: Stem): void {
    stem.isBroadened = false
    count(stem, 0)
    this.#options.narrow(broadest(stem))
  }
}

function createStem(parent: Stem | undefined, words: readonly string[]): Stem {
  return { parent, words, children: new Map(), addedCount: 0, apartCount: 0, madeCount: 0, isBroadened: false }
}

/** Adds `change` to the counts of a stem and of all above it. With 0 it takes in a change of `isBroadened`. */
function count(stem: Stem, change: number): void {
  let apartChange = change
  for (let each: Stem | undefined = stem; each !== undefined; each = each.parent) {
    const before = each.madeCount
    each.addedCount += change
    each.apartCount += apartChange
    each.madeCount = each.isBroadened ? Math.min(1, each.addedCount) : each.apartCount
    apartChange = each.madeCount - before
  }
}

function heaviestOf(stems: Iterable<Stem>): Stem | undefined {
  let heaviest: Stem | undefined
  for (const stem of stems) if (heaviest === undefined || stem.madeCount > heaviest.madeCount) heaviest = stem
  return heaviest
}

function broadest({ words }: Stem): string {
  return [...words, '*', '#'].join('.')
}

/** The words before the first wildcard. */
function headOf(pattern: string): readonly string[] {
  const words = pattern.split('.')
  return words.slice(
    0,
    words.findIndex((word) => word === '*' || word === '#'),
  )
}
