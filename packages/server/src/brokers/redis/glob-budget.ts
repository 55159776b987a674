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

  /** Globs that are needed now. */
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
