import { WebMQError } from 'webmq-client/protocol'
import { ALL, MAX_PAGE_ROWS, MAX_SHOWN_LISTENS, ROW } from '../../doors/http/api/operator-shapes.js'
import { defined } from '../../kernel/base/defined.js'
import { answer, count, flag, integer, list, name, optional, type ValueOf } from '../../kernel/base/shape.js'
import type { Nodes } from '../nodes/index.js'

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

type Answer = ({ readonly kind: 'rows' } & ConnectionRows) | { readonly kind: 'summary' }

/** Asks one node or all others. Resolves to the answers that come in time. */
type Ask = (query: RowsQuery, to?: string) => Promise<ReadonlyMap<string, Answer>>

/** This node, its sessions, and the others. */
interface ListSources {
  readonly node: string
  readonly nodes: Pick<Nodes, 'peers'>
  readonly sessions: Iterable<ListedSession>
}

/** Where a page ends. */
interface Place {
  readonly node: string
  readonly connection: number
}

/** Which connections to list, of one node or of all: by the names of the nodes, then by the numbers of connections. */
export interface PageQuery extends Pick<RowsQuery, 'match' | 'limit'> {
  /** A name or {@link ALL}. Default: the node at which the page before ended, or this one. */
  readonly node?: string | undefined
  /** `next` of the page before. */
  readonly after?: string | undefined
}

export interface ConnectionPage {
  readonly connections: readonly (Omit<ConnectionRow, 'connection'> & { readonly node: string })[]
  /** Absent on the last page. */
  readonly next?: string
  /** Nodes whose connections may be missing: they did not answer in time, or are of a version that cannot. */
  readonly missing: readonly string[]
}

interface Found {
  /** By node, this one too. */
  readonly found: ReadonlyMap<string, ConnectionRows>
  readonly missing: readonly string[]
}

/** Requests that ask other nodes at once: each costs a walk over the connections of every node. */
const MAX_REQUESTS = 16
const END = Number.MAX_SAFE_INTEGER

export class ConnectionList {
  readonly #sources: ListSources
  readonly #ask: Ask
  #requestCount = 0

  constructor(sources: ListSources, ask: Ask) {
    this.#sources = sources
    this.#ask = ask
  }

  /**
   * What each node has, as far as they answer in time.
   * @throws {WebMQError} `E_RATE_LIMIT` while too many requests wait for other nodes.
   */
  find(query: RowsQuery): Promise<Found> {
    return this.#bounded(() => this.#find(query))
  }

  /**
   * One page. It may be shorter than `limit` and still have a `next`: messages between nodes are bounded.
   * @throws {WebMQError} `E_RATE_LIMIT` while too many requests wait for other nodes.
   */
  page(query: PageQuery): Promise<ConnectionPage> {
    return this.#bounded(() => this.#page(query))
  }

  async #find(query: RowsQuery): Promise<Found> {
    const { node, nodes, sessions } = this.#sources
    const found = new Map([[node, rowsOf(sessions, query)]])
    const answers = nodes.peers().length > 0 ? await this.#ask(query) : []
    for (const [name, answer] of answers) if (answer.kind === 'rows') found.set(name, answer)
    return { found, missing: nodes.peers().filter((name) => !found.has(name)) }
  }

  async #page({ match, limit, after, node }: PageQuery): Promise<ConnectionPage> {
    const { node: own, nodes } = this.#sources
    const begin = placeOf(after)
    const named = node ?? begin?.node ?? own
    const names = (named === ALL ? [own, ...nodes.peers()] : [named]).filter((name) => name >= (begin?.node ?? ''))
    // How many each node has, so that only those are asked for rows whose rows are on this page.
    const counts = named === ALL ? await this.#find({ match, after: -1, limit: 0 }) : undefined
    const countOf = (name: string) => counts?.found.get(name)?.count ?? 0
    const holders = names.filter((name) => counts === undefined || countOf(name) > 0).toSorted()
    const missing = names.filter((name) => counts?.missing.includes(name))
    const asked: string[] = []
    let expectedCount = 0
    for (const name of holders) {
      if (expectedCount >= limit) break
      asked.push(name)
      // Of the node at which the page before ended, nobody knows how many are left.
      if (name !== begin?.node) expectedCount += countOf(name)
    }
    const parts = await Promise.all(
      asked.map((name) => this.#rowsOf(name, { match, limit, after: name === begin?.node ? begin.connection : -1 })),
    )
    const connections: ConnectionPage['connections'][number][] = []
    let end = ''
    let hasMore = asked.length < holders.length
    for (const [index, name] of asked.entries()) {
      const part = parts[index]
      if (part === undefined) missing.push(name)
      const rows = part?.rows ?? []
      const fitting = rows.slice(0, limit - connections.length)
      for (const { connection, ...row } of fitting) connections.push({ node: name, ...row })
      if (fitting.length > 0 || rows.length === 0) end = `${name}:${fitting.at(-1)?.connection ?? END}`
      if (part?.hasMore === true || fitting.length < rows.length) {
        hasMore = true
        break
      }
    }
    return hasMore ? { connections, missing, next: end } : { connections, missing }
  }

  async #rowsOf(name: string, query: RowsQuery): Promise<ConnectionRows | undefined> {
    const { node, sessions } = this.#sources
    if (name === node) return rowsOf(sessions, query)
    const answer = (await this.#ask(query, name)).get(name)
    return answer?.kind === 'rows' ? answer : undefined
  }

  async #bounded<T>(request: () => Promise<T>): Promise<T> {
    if (this.#requestCount >= MAX_REQUESTS) {
      throw new WebMQError('E_RATE_LIMIT', { detail: `${MAX_REQUESTS} requests wait for other nodes` })
    }
    this.#requestCount++
    try {
      return await request()
    } finally {
      this.#requestCount--
    }
  }
}

function placeOf(next: string | undefined): Place | undefined {
  if (next === undefined) return undefined
  const [node = '', connection] = next.split(':')
  return { node, connection: Number(connection) }
}
