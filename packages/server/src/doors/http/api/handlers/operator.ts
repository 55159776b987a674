import type { DisconnectTarget } from '../../../../features/operators/index.js'
import { claimDefect } from '../../../../kernel/identity/index.js'
import type { Revocation } from '../../../../kernel/identity/revocations.js'
import { withoutSecrets } from '../../../options/options.js'
import { DEFAULT_PAGE_ROWS, MAX_SHOWN_SESSIONS } from '../routes.js'
import type { Handler } from './handler.js'

export const connections: Handler<'connections'> = async ({ node }, { query }) => {
  const { node: named, after, limit = DEFAULT_PAGE_ROWS, ...match } = query
  return { node: node.name, ...(await node.cluster.connections.page({ node: named, after, limit, match })) }
}

export const user: Handler<'user'> = async ({ node }, { query }) => {
  const asked = { match: { user: query.user }, after: -1, limit: MAX_SHOWN_SESSIONS }
  const { found, missing } = await node.cluster.connections.find(asked)
  const places = Array.from(found, ([name, { count, rows }]) => ({
    node: name,
    connections: count,
    sessions: rows.map(({ session }) => session),
  }))
  return { nodes: places.filter(({ connections }) => connections > 0), missing }
}

export const patterns: Handler<'patterns'> = ({ node }, { query: { limit = DEFAULT_PAGE_ROWS } }) => {
  const counts = new Map<string, number>()
  // A pattern has a route for each variant of its listens.
  for (const { pattern, references } of node.patterns()) counts.set(pattern, (counts.get(pattern) ?? 0) + references)
  const rows = Array.from(counts, ([pattern, listeners]) => ({ pattern, listeners }))
  rows.sort((one, other) => other.listeners - one.listeners || (one.pattern < other.pattern ? -1 : 1))
  return { node: node.name, patternCount: counts.size, patterns: rows.slice(0, limit) }
}

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

export const info: Handler<'info'> = async ({ node }) => ({ node: node.name, ...(await node.cluster.nodes()) })

export const config: Handler<'config'> = ({ node, options }) => ({
  node: node.name,
  options: withoutSecrets(options),
})
