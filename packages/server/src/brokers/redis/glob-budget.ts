/**
 * Redis walks through the globs of all nodes for each PUBLISH: 0.05 us for one that begins like `room.7.*`, 0.25 us for one
 * like `*.7`. A message that a node gets and does not want costs Redis and the node 2 us. So few are worth having.
 */
const MAX_GLOBS = 64
/** What one broader glob must replace, at least, unless nothing does. */
const MIN_REPLACED = 16
/** Below this, a broader glob is given up again. Well below the former, so that a pattern that comes and goes does not move much. */
const MAX_KEPT_APART = 8

/** Where globs begin alike. */
interface Stem {
  readonly parent: Stem | undefined
  /** The words that they begin with. */
  readonly words: readonly string[]
  readonly children: Map<string, Stem>
  /** Globs that were added here and below. */
  addedCount: number
  /** Globs that are made of those while it is not replaced itself. */
  apartCount: number
  /** Globs that are made of those. */
  madeCount: number
  isReplaced: boolean
}

/** What a {@link GlobBudget} asks for. */
export interface GlobBudgetOptions {
  /** A broader reach is worth having besides what was added. */
  replace(reach: string): void
  /** It no longer is. */
  restore(reach: string): void
}

/**
 * Keeps the number of a node's globs within a bound: when there are too many, those that begin alike are replaced by the one that
 * contains them all, which brings more than is wanted.
 */
export class GlobBudget {
  readonly #options: GlobBudgetOptions
  readonly #root = createStem(undefined, [])

  constructor(options: GlobBudgetOptions) {
    this.#options = options
  }

  /** Globs that there are now. */
  get madeCount(): number {
    return this.#root.madeCount
  }

  /** The reach of a glob that is wanted. */
  add(reach: string): void {
    let stem = this.#root
    for (const word of headOf(reach)) {
      const child = stem.children.get(word) ?? createStem(stem, [...stem.words, word])
      stem.children.set(word, child)
      stem = child
    }
    count(stem, 1)
    if (this.#root.madeCount > MAX_GLOBS) this.#replace()
  }

  /** Only what was added. */
  delete(reach: string): void {
    let stem = this.#root
    for (const word of headOf(reach)) stem = stem.children.get(word) ?? stem
    count(stem, -1)
    for (let each: Stem | undefined = stem; each !== undefined; each = each.parent) {
      if (each.isReplaced && each.addedCount <= MAX_KEPT_APART) this.#restore(each)
      if (each.addedCount === 0) each.parent?.children.delete(each.words.at(-1) ?? '')
    }
  }

  /** As far down as it replaces enough. */
  #replace(): void {
    let stem = this.#root
    for (let next: Stem | undefined = stem; next !== undefined; next = heaviestOf(stem.children.values())) {
      if (next !== this.#root && next.madeCount < MIN_REPLACED) break
      stem = next
    }
    stem.isReplaced = true
    count(stem, 0)
    this.#options.replace(broadest(stem))
  }

  #restore(stem: Stem): void {
    stem.isReplaced = false
    count(stem, 0)
    this.#options.restore(broadest(stem))
  }
}

function createStem(parent: Stem | undefined, words: readonly string[]): Stem {
  return { parent, words, children: new Map(), addedCount: 0, apartCount: 0, madeCount: 0, isReplaced: false }
}

/** Counts in or out what was added to a stem, or that it is replaced or no longer, up to the root. */
function count(stem: Stem, change: number): void {
  let apartChange = change
  for (let each: Stem | undefined = stem; each !== undefined; each = each.parent) {
    const before = each.madeCount
    each.addedCount += change
    each.apartCount += apartChange
    each.madeCount = each.isReplaced ? Math.min(1, each.addedCount) : each.apartCount
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
function headOf(reach: string): readonly string[] {
  const words = reach.split('.')
  return words.slice(
    0,
    words.findIndex((word) => word === '*' || word === '#'),
  )
}
