import { defined } from '../../../base/defined.js'
import { claimDefect } from '../../../identity/index.js'
import type { Revocation } from '../../../identity/revocations.js'
import { withoutSecrets } from '../../../options/without-secrets.js'
import type { DisconnectTarget } from '../../operators/index.js'
import type { ListedSession } from '../node.js'
import { DEFAULT_PAGE_ROWS, MAX_SHOWN_LISTENS } from '../routes.js'
import type { Handler } from './handler.js'

/** Lists the connections of this node in the order of their numbers, so that a page needs no memory of the one before. */
export const connections: Handler<'connections'> = ({ node }, { query }) => {
  const { user, address, session, after = -1, limit = DEFAULT_PAGE_ROWS } = query
  const found: ListedSession[] = []
  for (const one of node.sessions()) {
    if (one.connection <= after) continue
    if (user !== undefined && one.userId !== user) continue
    if (session !== undefined && one.id !== session) continue
    if (address !== undefined && one.address !== address) continue
    found.push(one)
  }
  found.sort((one, other) => one.connection - other.connection)
  const page = found.slice(0, limit)
  const next = found.length > limit ? page.at(-1)?.connection : undefined
  const rows = page.map(rowOf)
  return next === undefined ? { node: node.name, connections: rows } : { node: node.name, connections: rows, next }
}

function rowOf(session: ListedSession) {
  const { id, userId, address, openedAtMs, listenCount } = session
  return {
    session: id,
    ...defined({ user: userId }),
    address,
    openedAt: new Date(openedAtMs).toISOString(),
    listenCount,
    listens: session.patterns().slice(0, MAX_SHOWN_LISTENS),
  }
}

/** Finds a user on all nodes. */
export const user: Handler<'user'> = async ({ node }, { query }) => {
  const { own, others, silentCount } = await node.cluster.find(query.user)
  const places = own.connections > 0 ? [[node.name, own] as const, ...others] : [...others]
  return { nodes: places.map(([name, at]) => ({ node: name, ...at })), silentCount }
}

/** Lists the patterns with the most listeners. */
export const patterns: Handler<'patterns'> = ({ node }, { query: { limit = DEFAULT_PAGE_ROWS } }) => {
  const counts = new Map<string, number>()
  // A pattern has a route for each variant of its listens.
  for (const { pattern, references } of node.patterns()) counts.set(pattern, (counts.get(pattern) ?? 0) + references)
  const rows = Array.from(counts, ([pattern, listeners]) => ({ pattern, listeners }))
  rows.sort((one, other) => other.listeners - one.listeners || (one.pattern < other.pattern ? -1 : 1))
  return { node: node.name, patternCount: counts.size, patterns: rows.slice(0, limit) }
}

/** Ends connections on all nodes. */
export const disconnect: Handler<'disconnect'> = async ({ node }, { caller, body }) => {
  const { code = 'E_DISCONNECTED_BY_OPERATOR' } = body
  const target: DisconnectTarget =
    'user' in body
      ? { by: 'user', value: body.user }
      : 'session' in body
        ? { by: 'session', value: body.session }
        : { by: 'address', value: body.address }
  node.operated(caller, 'disconnect', `${target.by} ${target.value}`)
  return { node: node.name, disconnected: await node.cluster.disconnect(target, code) }
}

/** Revokes tokens on all nodes. */
export const revoke: Handler<'revoke'> = async ({ node }, { caller, body }) => {
  const { until } = body
  const revocation: Revocation =
    'user' in body
      ? { by: 'user', value: body.user, until, issuedUntil: Math.floor(Date.now() / 1_000) }
      : { by: 'token', value: body.tokenId, until }
  node.operated(caller, 'revoke', `${revocation.by} ${revocation.value}`)
  // No token with such a claim is accepted, so there is nothing to revoke.
  if (claimDefect(revocation.value) !== undefined) return { isKept: false }
  return { isKept: (await node.cluster.revoke(revocation)) !== 'over' }
}

/** Describes this node and the others. */
export const info: Handler<'info'> = async ({ node }) => ({ node: node.name, nodes: await node.cluster.nodes() })

/** Shows the options with all secrets hidden. */
export const config: Handler<'config'> = ({ node, options }) => ({
  node: node.name,
  options: withoutSecrets(options),
})
