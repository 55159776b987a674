import { matches } from '../protocol/index.js'

/** Limit of cached keys. Limits memory when keys contain ids. */
const MAX_KEYS = 1_024

/** Caches which patterns match a key. Cost for a known key: O(1). */
export class MatchCache<T extends { readonly pattern: string }> {
  readonly #found = new Map<string, readonly T[]>()

  /** The candidates whose pattern matches, in their order. */
  find(key: string, candidates: Iterable<T>): readonly T[] {
    let found = this.#found.get(key)
    if (!found) {
      found = [...candidates].filter(({ pattern }) => matches(pattern, key))
      if (this.#found.size >= MAX_KEYS) this.clear()
      this.#found.set(key, found)
    }
    return found
  }

  /** Call it when the candidates have changed. */
  clear(): void {
    this.#found.clear()
  }
}
