import { defined } from '../../base/defined.js'
import { type Fields, isCount, listOf } from '../../nodes/index.js'

/** Rows of one page of a listing. */
export const MAX_PAGE_ROWS = 1_000
/** Patterns of a connection in a listing. The number of all is beside them. */
export const MAX_SHOWN_LISTENS = 16
const MAX_TEXT_CHARS = 1_024

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

/** Which connections of a node to list: those that have all of these, in the order of their numbers. */
export interface RowsQuery {
  readonly match: {
    readonly user?: string | undefined
    readonly address?: string | undefined
    readonly session?: string | undefined
  }
  /** Only numbers above this; -1 for all. */
  readonly after: number
  /** 0: nothing but the count. */
  readonly limit: number
}

export interface ConnectionRow {
  /** Its number at the node. */
  readonly connection: number
  readonly session: string
  readonly user?: string
  /** Empty if it is not known. */
  readonly address: string
  /** RFC 3339. */
  readonly openedAt: string
  readonly listenCount: number
  /** The first {@link MAX_SHOWN_LISTENS}. */
  readonly listens: readonly string[]
}

export interface ConnectionRows {
  /** All that match, whatever `after` and `limit` are. */
  readonly count: number
  readonly rows: readonly ConnectionRow[]
  readonly hasMore: boolean
}

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
  let count = 0
  for (const one of sessions) {
    if (one.isClosed) continue
    if (user !== undefined && one.userId !== user) continue
    if (session !== undefined && one.id !== session) continue
    if (address !== undefined && one.address !== address) continue
    count++
    if (limit > 0 && one.connection > after) found.push(one)
  }
  found.sort((one, other) => one.connection - other.connection)
  const rows: ConnectionRow[] = []
  let byteCount = 0
  for (const one of found.slice(0, limit)) {
    const row = rowOf(one)
    byteCount += Buffer.byteLength(JSON.stringify(row)) + 1
    if (byteCount > maxBytes && rows.length > 0) break
    rows.push(row)
  }
  return { count, rows, hasMore: rows.length < found.length }
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

/** Reads the question of another node; `undefined` when it is malformed. */
export function rowsQueryFrom({ match, after, limit }: Fields): RowsQuery | undefined {
  const { user, address, session } = Object(match) as Fields
  if (![user, address, session].every((value) => value === undefined || isText(value))) return undefined
  if (!isCount(limit) || !Number.isSafeInteger(after)) return undefined
  const read = { user, address, session } as RowsQuery['match']
  return { match: read, after: after as number, limit: Math.min(limit, MAX_PAGE_ROWS) }
}

/** Reads the answer of another node; `undefined` when it is malformed. */
export function connectionRowsFrom({ count, rows, hasMore }: Fields): ConnectionRows | undefined {
  const read = listOf(rows, MAX_PAGE_ROWS, (row) => rowFrom(Object(row) as Fields))
  return read && isCount(count) && typeof hasMore === 'boolean' ? { count, rows: read, hasMore } : undefined
}

function rowFrom({ connection, session, user, address, openedAt, listenCount, listens }: Fields) {
  const shown = listOf(listens, MAX_SHOWN_LISTENS, (pattern) => (isText(pattern) ? pattern : undefined))
  if (!isCount(connection) || !isCount(listenCount) || !isText(session) || !isText(openedAt)) return undefined
  if ((user !== undefined && !isText(user)) || (address !== '' && !isText(address))) return undefined
  return shown && { connection, session, ...defined({ user }), address, openedAt, listenCount, listens: shown }
}

/** Whether a member of a message is a text of moderate length. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TEXT_CHARS
}
