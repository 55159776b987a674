import { isKey, matches } from 'webmq-client/protocol'

/** Keys whose answer is cached; a full cache is cleared. */
const MAX_REMEMBERED_KEYS = 10_000

/** The keys that an option names by patterns. */
export class KeyRules {
  readonly #patterns: readonly string[]
  readonly #isForAll: boolean
  readonly #byKey = new Map<string, boolean>()

  /** @param patterns Valid. */
  constructor(patterns: readonly string[]) {
    this.#patterns = patterns
    this.#isForAll = patterns.includes('#')
  }

  /** Whether no pattern is named, so that no key is. */
  get isEmpty(): boolean {
    return this.#patterns.length === 0
  }

  /** Whether a pattern matches the key. Cost: nothing without patterns, one look-up for a cached key. */
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

  /** `false` when it is sure that no key which the pattern matches is named. */
  mayCover(pattern: string): boolean {
    return isKey(pattern) ? this.covers(pattern) : !this.isEmpty
  }
}
