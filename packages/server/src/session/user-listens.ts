import { refusalOf } from 'webmq-client/protocol'

/** A session as {@link UserListens} sees it. */
export interface ListeningSession {
  readonly userId: string | undefined
  readonly listenCount: number
}

/**
 * Counts the listens of each user over all its connections. Counts nothing until somebody has a limit, because the counts
 * take memory for each user.
 */
export class UserListens {
  readonly #sessions: Iterable<ListeningSession>
  #counts: Map<string, number> | undefined

  /** @param sessions All of this node. */
  constructor(sessions: Iterable<ListeningSession>) {
    this.#sessions = sessions
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

  /** Listens of a user have begun, or, with a negative number, ended. */
  add(userId: string | undefined, count: number): void {
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
