import { matches } from '../../protocol/matching.js'
import type { Session } from './session.js'

/** Limit of cached keys. Limits memory when keys contain ids. */
const MAX_CACHED_KEYS = 1_024

/** The operation that ends each operation of presence that lasts. */
const PRESENCE_ENDS: Readonly<Record<string, 'op=leave' | 'op=unwatch'>> = {
  'op=enter': 'op=leave',
  'op=leave': 'op=leave',
  'op=watch': 'op=unwatch',
  'op=unwatch': 'op=unwatch',
}

/** What one tab asked for. */
interface Holding {
  readonly options: readonly string[]
  /** Whether its request was answered for good: from then on it gets live messages. */
  isLive: boolean
}

/**
 * Names what a request begins or ends: by the fields of the request that ends it, without an id. `undefined` if nothing of
 * it lasts longer than its answer.
 */
export function holdingOf([verb, , subject = '', ...options]: readonly string[]): string | undefined {
  if (verb === 'listen' || verb === 'unlisten') {
    // Pattern, group and kind together name a queue group [P-16.1].
    const membership = options.filter((option) => option.startsWith('group=') || option === 'respond')
    return nameOfListen(subject, ...membership)
  }
  if (verb !== 'presence') return undefined
  const end = PRESENCE_ENDS[options.find((option) => option.startsWith('op=')) ?? '']
  return end && nameOfPresence(subject, end)
}

/** Names a listen, or a membership in a queue group. */
export function nameOfListen(pattern: string, ...membership: readonly string[]): string {
  return ['unlisten', '', pattern, ...membership].join(' ')
}

/** Names presence at a key, or a watch of it. */
export function nameOfPresence(key: string, end: 'op=leave' | 'op=unwatch'): string {
  return `presence  ${key} ${end}`
}

/**
 * What the tabs hold on the connection: listens, memberships in queue groups, presence, and watches of it. A connection
 * has each of them once [P-6.2, P-14.4, P-16.2]: it begins with the first tab, and ends with the last one.
 */
export class Holdings {
  readonly #byName = new Map<string, Map<Session, Holding>>()
  /** The tabs that get a live message, by key. */
  readonly #cache = new Map<string, readonly Session[]>()

  /**
   * A tab asks for it.
   * @returns The options of the request that serve all tabs: the last request decides for all of them [P-6.12].
   */
  hold(session: Session, name: string, asked: readonly string[]): readonly string[] {
    const holdings = this.#byName.get(name) ?? new Map<Session, Holding>()
    this.#byName.set(name, holdings)
    // The name of the member that stands for all tabs [P-14.3].
    const member = [...holdings.values()][0]?.options.find(isMember)
    const options = asked.map((option) => (isMember(option) ? (member ?? option) : option))
    holdings.set(session, { options, isLive: holdings.get(session)?.isLive ?? false })
    const all = [...holdings.values()].map((one) => one.options)
    const [overflow, ...others] = new Set(all.map((one) => one.find(isOverflow)))
    const shared = options.filter((option) => !isOverflow(option) && option !== 'meta')
    // A tab that does not allow it must not miss messages.
    if (others.length > 0) shared.push('overflow=disconnect')
    else if (overflow !== undefined) shared.push(overflow)
    if (all.some((one) => one.includes('meta'))) shared.push('meta')
    return shared
  }

  /** The request of a tab was answered for good: live messages follow. */
  live(session: Session, name: string): void {
    const holding = this.#byName.get(name)?.get(session)
    if (!holding || holding.isLive) return
    holding.isLive = true
    this.#cache.clear()
  }

  /** The request of a tab was refused. What was live before stays so. */
  refused(session: Session, name: string): void {
    if (this.#byName.get(name)?.get(session)?.isLive === false) this.drop(session, name)
  }

  /** A tab does not want it any more. Returns whether it did, and whether it was the last one. */
  drop(session: Session, name: string): 'last' | 'others' | 'none' {
    const holdings = this.#byName.get(name)
    if (!holdings?.delete(session)) return 'none'
    this.#cache.clear()
    if (holdings.size > 0) return 'others'
    this.#byName.delete(name)
    return 'last'
  }

  /** A tab has gone. Returns what nobody holds any more. */
  forget(session: Session): readonly string[] {
    return [...this.#byName.keys()].filter((name) => this.drop(session, name) === 'last')
  }

  /** The server has ended it [P-5.5]. Returns the tabs that had it. Requests that wait get their own answers. */
  end(name: string): readonly Session[] {
    const live = [...(this.#byName.get(name) ?? [])].flatMap(([session, { isLive }]) => (isLive ? [session] : []))
    for (const session of live) this.drop(session, name)
    return live
  }

  /** The tabs that hold it. */
  at(name: string): readonly Session[] {
    return [...(this.#byName.get(name)?.keys() ?? [])]
  }

  /** The tab whose turn it is. */
  next(name: string): Session | undefined {
    const holdings = this.#byName.get(name)
    for (const [session, holding] of holdings ?? []) {
      holdings?.delete(session)
      holdings?.set(session, holding)
      return session
    }
    return undefined
  }

  /** The tabs that get a live message. Cost for a known key: O(1). */
  find(key: string): readonly Session[] {
    let found = this.#cache.get(key)
    if (!found) {
      const sessions = new Set<Session>()
      for (const [name, holdings] of this.#byName) {
        const [verb, , pattern = '', membership] = name.split(' ')
        if (verb !== 'unlisten' || membership !== undefined || !matches(pattern, key)) continue
        for (const [session, { isLive }] of holdings) if (isLive) sessions.add(session)
      }
      if (this.#cache.size >= MAX_CACHED_KEYS) this.#cache.clear()
      found = [...sessions]
      this.#cache.set(key, found)
    }
    return found
  }
}

function isMember(option: string): boolean {
  return option.startsWith('member=')
}

function isOverflow(option: string): boolean {
  return option.startsWith('overflow=')
}
