import { matches } from '../protocol/index.js'
import type { Session } from './session.js'

/** What one tab asked for. */
interface Holding {
  readonly overflow: string | undefined
  readonly isMeta: boolean
  /** Whether its listen was answered: from then on it gets live messages. */
  isLive: boolean
}

/** Limit of cached keys. Limits memory when keys contain ids. */
const MAX_CACHED_KEYS = 1_024

/** Which tab listens to what. On the connection, equal patterns of several tabs are one listen [P-6.2]. */
export class SharedListens {
  readonly #byPattern = new Map<string, Map<Session, Holding>>()
  readonly #cache = new Map<string, readonly Session[]>()

  /**
   * A tab asks for a pattern.
   * @returns The options of the listen that serve all tabs: the last request decides for all of them [P-6.12].
   */
  hold(session: Session, pattern: string, options: readonly string[]): readonly string[] {
    const holdings = this.#byPattern.get(pattern) ?? new Map<Session, Holding>()
    this.#byPattern.set(pattern, holdings)
    holdings.set(session, {
      overflow: options.find((option) => option.startsWith('overflow=')),
      isMeta: options.includes('meta'),
      isLive: holdings.get(session)?.isLive ?? false,
    })
    const all = [...holdings.values()]
    const [first] = all
    // A tab that does not allow it must not miss messages.
    const overflow = all.every((one) => one.overflow === first?.overflow) ? first?.overflow : 'overflow=disconnect'
    const rest = options.filter((option) => !option.startsWith('overflow=') && option !== 'meta')
    if (overflow !== undefined) rest.push(overflow)
    if (all.some(({ isMeta }) => isMeta)) rest.push('meta')
    return rest
  }

  /** The listen of a tab was answered for good: live messages follow. */
  live(session: Session, pattern: string): void {
    const holding = this.#byPattern.get(pattern)?.get(session)
    if (!holding || holding.isLive) return
    holding.isLive = true
    this.#cache.clear()
  }

  /** The listen of a tab was refused. One that was live before stays so. */
  refused(session: Session, pattern: string): void {
    if (this.#byPattern.get(pattern)?.get(session)?.isLive === false) this.drop(session, pattern)
  }

  /** A tab does not listen any more. Returns whether it did, and whether it was the last one. */
  drop(session: Session, pattern: string): 'last' | 'others' | 'none' {
    const holdings = this.#byPattern.get(pattern)
    if (!holdings?.delete(session)) return 'none'
    this.#cache.clear()
    if (holdings.size > 0) return 'others'
    this.#byPattern.delete(pattern)
    return 'last'
  }

  /** The patterns of a tab. */
  patternsOf(session: Session): readonly string[] {
    return [...this.#byPattern].filter(([, holdings]) => holdings.has(session)).map(([pattern]) => pattern)
  }

  /** The tabs with this pattern. */
  at(pattern: string): readonly Session[] {
    return [...(this.#byPattern.get(pattern)?.keys() ?? [])]
  }

  /** The server has ended a listen [P-5.5]. */
  end(pattern: string): void {
    this.#byPattern.delete(pattern)
    this.#cache.clear()
  }

  /** The tabs that get a live message. Cost for a known key: O(1). */
  find(key: string): readonly Session[] {
    let found = this.#cache.get(key)
    if (!found) {
      const sessions = new Set<Session>()
      for (const [pattern, holdings] of this.#byPattern) {
        if (!matches(pattern, key)) continue
        for (const [session, { isLive }] of holdings) if (isLive) sessions.add(session)
      }
      if (this.#cache.size >= MAX_CACHED_KEYS) this.#cache.clear()
      found = [...sessions]
      this.#cache.set(key, found)
    }
    return found
  }
}
