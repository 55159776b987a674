import { refusalOf } from 'webmq-client/protocol'
import { isSearch } from '../ports/word-limits.js'
import type { SessionLimits } from './effective-limits.js'

export interface ListenCounts {
  readonly size: number
  readonly searchCount: number
}

/** A session that is about to listen. */
interface Listening {
  readonly listens: ListenCounts
  readonly groupCounts: ListenCounts
  readonly limits: SessionLimits
  readonly userId: string | undefined
  readonly services: { readonly userListens: Pick<UserListens, 'assertRoom'> }
}

/**
 * Whether a connection may listen once more, in whichever way: to a pattern, in a queue group, or by an event stream.
 * @param beginningCount Patterns that begin with this one, and are not counted yet.
 * @throws {WebMQError} `E_LISTEN_LIMIT`
 */
export function assertRoom(session: Listening, pattern: string, beginningCount = 0): void {
  const { listens, groupCounts, limits, userId, services } = session
  const { maxListensPerConnection: max, maxSearchListensPerConnection: maxSearches, maxListensPerUser } = limits
  if (listens.size + groupCounts.size + beginningCount >= max) {
    throw refusalOf('E_LISTEN_LIMIT', { detail: `${pattern}: at most ${max} (maxListensPerConnection)` })
  }
  if (maxListensPerUser !== undefined && userId !== undefined)
    services.userListens.assertRoom(userId, maxListensPerUser)
  if (listens.searchCount + groupCounts.searchCount >= maxSearches && isSearch(pattern)) {
    const detail = `${pattern}: at most ${maxSearches} with a # before the last word (maxSearchListensPerConnection)`
    throw refusalOf('E_LISTEN_LIMIT', { detail })
  }
}

/** A session as {@link UserListens} sees it. */
export interface ListeningSession {
  readonly userId: string | undefined
  readonly listenCount: number
}

/**
 * Counts the listens of all connections, and those of each user over all its connections. Counts none of users until
 * somebody has a limit, because those counts take memory for each user.
 */
export class UserListens {
  readonly #sessions: Iterable<ListeningSession>
  #counts: Map<string, number> | undefined
  #totalCount = 0

  /** @param sessions All of this node. */
  constructor(sessions: Iterable<ListeningSession>) {
    this.#sessions = sessions
  }

  /** Listens of all connections. */
  get totalCount(): number {
    return this.#totalCount
  }

  /**
   * Whether the user may listen once more. Cost: O(sessions) in the first call of all.
   * @throws {WebMQError} `E_LISTEN_LIMIT`
   */
  assertRoom(userId: string, max: number): void {
    this.#counts ??= this.#countAll()
    if ((this.#counts.get(userId) ?? 0) < max) return
    throw refusalOf('E_LISTEN_LIMIT', { detail: `at most ${max} of one user (maxListensPerUser)` })
  }

  /** Listens of a connection of the user, if it has one, have begun or, with a negative number, ended. */
  add(userId: string | undefined, count: number): void {
    this.#totalCount += count
    if (this.#counts === undefined || userId === undefined || count === 0) return
    const sum = (this.#counts.get(userId) ?? 0) + count
    if (sum > 0) this.#counts.set(userId, sum)
    else this.#counts.delete(userId)
  }

  #countAll(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { userId, listenCount } of this.#sessions) {
      if (userId !== undefined && listenCount > 0) counts.set(userId, (counts.get(userId) ?? 0) + listenCount)
    }
    return counts
  }
}
