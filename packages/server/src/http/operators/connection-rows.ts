import { defined } from '../../base/defined.js'
import { answer, count, flag, integer, list, name, optional, text, type ValueOf } from '../schema.js'

/** Rows of one page of a listing. */
export const MAX_PAGE_ROWS = 1_000
/** Patterns of a connection in a listing. The number of all is beside them. */
const MAX_SHOWN_LISTENS = 16
/** Bytes of the `sub` or the `jti` of a token that the server accepts. */
export const MAX_CLAIM_CHARS = 255

/** What a listing needs to know of a session. */
export interface ListedSession {
  readonly connection: number
  readonly id: string
  readonly userId: string | undefined
  readonly address: string
  readonly openedAtMs: number
  readonly listenCount: number
  readonly isClosed: boolean
  patterns(): readonly string[]
}

/** The id of a session. */
export const SESSION = text({
  maxLength: MAX_CLAIM_CHARS,
  description: 'The id of a session, as `welcome`, the log and `GET /api/connections` have it.',
  examples: ['Zx0aB3kQ9mT1uVwY'],
})
export const USER = text({ maxLength: MAX_CLAIM_CHARS, description: 'The `sub` of tokens.', examples: ['ann'] })

/** What is told of a connection. */
export const ROW = {
  session: SESSION,
  user: optional(USER),
  address: text({ minLength: 0, maxLength: 1_024, description: 'The IP address; empty if it is not known.' }),
  openedAt: text({ maxLength: 32, format: 'date-time' }),
  listenCount: count(),
  listens: list(name('A pattern.'), { maxItems: MAX_SHOWN_LISTENS, description: `The first ${MAX_SHOWN_LISTENS}.` }),
}

/** Rows of a node. `count`: all that match, whatever `after` and `limit` are. `connection`: its number at the node. */
export const ROWS = {
  count: count(),
  rows: list(answer({ connection: count(), ...ROW }), { maxItems: MAX_PAGE_ROWS }),
  hasMore: flag(),
}

const FILTER = optional(name('What a connection must have.'))

/**
 * Which connections of a node to list: those that match all, in the order of their numbers. Only numbers above `after`: -1 for
 * all. A `limit` of 0 asks for nothing but the count.
 */
export const QUERY = answer({
  match: answer({ user: FILTER, address: FILTER, session: FILTER }),
  after: integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER }),
  limit: count(),
})

export type RowsQuery = ValueOf<typeof QUERY>
export type ConnectionRows = { readonly [Name in keyof typeof ROWS]: ValueOf<(typeof ROWS)[Name]> }
export type ConnectionRow = ConnectionRows['rows'][number]

/**
 * The connections of a node. Needs no memory of the page before. Cost: O(sessions), cheap for each.
 * @param maxBytes JSON of the rows. One row always fits.
 */
export function rowsOf(
  sessions: Iterable<ListedSession>,
  { match: { user, address, session }, after, limit }: RowsQuery,
  maxBytes = Number.POSITIVE_INFINITY,
): ConnectionRows {
  const found: ListedSession[] = []
  let matchCount = 0
  for (const one of sessions) {
    if (one.isClosed) continue
    if (user !== undefined && one.userId !== user) continue
    if (session !== undefined && one.id !== session) continue
    if (address !== undefined && one.address !== address) continue
    matchCount++
    if (limit > 0 && one.connection > after) found.push(one)
  }
  found.sort((one, other) => one.connection - other.connection)
  const rows: ConnectionRow[] = []
  let byteCount = 0
  for (const one of found.slice(0, Math.min(limit, MAX_PAGE_ROWS))) {
    const row = rowOf(one)
    byteCount += Buffer.byteLength(JSON.stringify(row)) + 1
    if (byteCount > maxBytes && rows.length > 0) break
    rows.push(row)
  }
  return { count: matchCount, rows, hasMore: rows.length < found.length }
}

function rowOf(session: ListedSession): ConnectionRow {
  const { connection, id, userId, address, openedAtMs, listenCount } = session
  return {
    connection,
    session: id,
    ...defined({ user: userId }),
    address,
    openedAt: new Date(openedAtMs).toISOString(),
    listenCount,
    listens: session.patterns().slice(0, MAX_SHOWN_LISTENS),
  }
}
