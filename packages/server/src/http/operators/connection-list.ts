import { WebMQError } from 'webmq-client/protocol'
import type { ConnectionRow, ConnectionRows, RowsQuery } from './connection-rows.js'
import type { OperatorAnswer } from './operator-message.js'

export interface ConnectionListContext {
  /** Name of this node. */
  readonly node: string
  /** Names of the other nodes. */
  readonly peers: () => readonly string[]
  /** The connections of this node. */
  readonly list: (query: RowsQuery) => ConnectionRows
  /** Asks one node or all others. Resolves to the answers that come in time. */
  readonly ask: (query: RowsQuery, to?: string) => Promise<ReadonlyMap<string, OperatorAnswer>>
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

/** Stands for all nodes where a name may be. Names are longer. */
export const ALL = 'all'
/** Requests that ask other nodes at once: each costs a walk over the connections of every node. */
const MAX_REQUESTS = 16
const END = Number.MAX_SAFE_INTEGER

/** The connections of all nodes. */
export class ConnectionList {
  readonly #context: ConnectionListContext
  #requestCount = 0

  constructor(context: ConnectionListContext) {
    this.#context = context
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
    const { node, list, ask, peers } = this.#context
    const found = new Map([[node, list(query)]])
    const answers = peers().length > 0 ? await ask(query) : []
    for (const [name, answer] of answers) if (answer.kind === 'rows') found.set(name, answer)
    return { found, missing: peers().filter((name) => !found.has(name)) }
  }

  async #page({ match, limit, after, node }: PageQuery): Promise<ConnectionPage> {
    const { node: own, peers } = this.#context
    const begin = placeOf(after)
    const named = node ?? begin?.node ?? own
    const names = (named === ALL ? [own, ...peers()] : [named]).filter((name) => name >= (begin?.node ?? ''))
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
    const { node, list, ask } = this.#context
    if (name === node) return list(query)
    const answer = (await ask(query, name)).get(name)
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
