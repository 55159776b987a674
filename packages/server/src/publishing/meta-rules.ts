import { isKey, matches } from 'webmq-client/protocol'

/** Keys whose answer is cached; a full cache is cleared. */
const MAX_REMEMBERED_KEYS = 10_000

/** The keys whose messages say who published them, and when. */
export class MetaRules {
  readonly #patterns: readonly string[]
  readonly #isForAll: boolean
  readonly #byKey = new Map<string, boolean>()

  /** @param patterns Valid. */
  constructor(patterns: readonly string[]) {
    this.#patterns = patterns
    this.#isForAll = patterns.includes('#')
  }

  /** Without a rule no message is stamped. */
  get isEmpty(): boolean {
    return this.#patterns.length === 0
  }

  /** Whether messages of a key are stamped. Cost: one look-up for a cached key. */
  covers(key: string): boolean {
    if (this.#isForAll) return true
    if (this.#patterns.length === 0) return false
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const isCovered = this.#patterns.some((pattern) => matches(pattern, key))
    if (this.#byKey.size >= MAX_REMEMBERED_KEYS) this.#byKey.clear()
    this.#byKey.set(key, isCovered)
    return isCovered
  }

  /** `false` when it is sure that no message which the pattern matches is stamped. */
  mayCover(pattern: string): boolean {
    return isKey(pattern) ? this.covers(pattern) : !this.isEmpty
  }
}
