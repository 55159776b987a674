import { refusalOf } from 'webmq-client/protocol'
import { isSearch } from '../ports/word-limits.js'
import type { Session } from './session.js'

/**
 * Whether a connection may listen once more, in whichever way: to a pattern, in a queue group, or by an event stream.
 * @param beginningCount Patterns that begin with this one, and are not counted yet.
 * @throws {WebMQError} `E_LISTEN_LIMIT`
 */
export function assertRoom(
  session: Pick<Session, 'listens' | 'groupCounts' | 'limits' | 'userId' | 'services'>,
  pattern: string,
  beginningCount = 0,
): void {
  const { listens, groupCounts, limits, userId, services } = session
  const { maxListensPerConnection: max, maxSearchListensPerConnection: maxSearches, maxListensPerUser } = limits
  if (listens.size + groupCounts.size + beginningCount >= max) {
    throw refusalOf('E_LISTEN_LIMIT', { detail: `at most ${max}` })
  }
  if (maxListensPerUser !== undefined && userId !== undefined)
    services.userListens.assertRoom(userId, maxListensPerUser)
  if (listens.searchCount + groupCounts.searchCount >= maxSearches && isSearch(pattern)) {
    const detail = `at most ${maxSearches} with a # before the last word (maxSearchListensPerConnection)`
    throw refusalOf('E_LISTEN_LIMIT', { detail })
  }
}
