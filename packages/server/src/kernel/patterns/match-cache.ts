import type { GroupId } from '../ports/transport.js'

/**
 * Remembers which groups a key matches, within a bound of keys and of group ids.
 *
 * Two generations instead of an LRU list: a hit in the young generation costs one lookup and moves nothing. When the
 * young generation has half of the limit, it replaces the old one.
 */
export class MatchCache {
  readonly #maxYoungKeys: number
  readonly #maxYoungGroups: number
  #young = new Map<string, readonly GroupId[]>()
  #old = new Map<string, readonly GroupId[]>()
  #youngGroupCount = 0
  /** The answer of the last `get`: publications often come in runs to one key. */
  #lastKey: string | undefined
  #lastGroups: readonly GroupId[] | undefined

  /**
   * @param maxKeys Most keys to remember.
   * @param maxGroups Most group ids over all keys: a key that thousands of patterns match takes much memory.
   */
  constructor(maxKeys: number, maxGroups: number) {
    this.#maxYoungKeys = Math.max(1, Math.floor(maxKeys / 2))
    this.#maxYoungGroups = Math.max(1, Math.floor(maxGroups / 2))
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): readonly GroupId[] | undefined {
    if (key === this.#lastKey) return this.#lastGroups
    const groups = this.#young.get(key) ?? this.#rejuvenate(key)
    if (groups !== undefined) {
      this.#lastKey = key
      this.#lastGroups = groups
    }
    return groups
  }

  /** @param groups Kept, not copied. */
  set(key: string, groups: readonly GroupId[]): void {
    if (this.#young.size >= this.#maxYoungKeys || this.#youngGroupCount >= this.#maxYoungGroups) {
      this.#old = this.#young
      this.#young = new Map()
      this.#youngGroupCount = 0
    }
    this.#young.set(key, groups)
    this.#youngGroupCount += groups.length
  }

  delete(key: string): void {
    this.#lastKey = undefined
    const young = this.#young.get(key)
    if (young !== undefined) {
      this.#youngGroupCount -= young.length
      this.#young.delete(key)
    }
    this.#old.delete(key)
  }

  clear(): void {
    this.#lastKey = undefined
    if (this.#young.size > 0) this.#young = new Map()
    if (this.#old.size > 0) this.#old = new Map()
    this.#youngGroupCount = 0
  }

  #rejuvenate(key: string): readonly GroupId[] | undefined {
    const groups = this.#old.get(key)
    if (groups === undefined) return undefined
    this.#old.delete(key)
    this.set(key, groups)
    return groups
  }
}
