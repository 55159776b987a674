import type { FeatureRoutes } from '../../doors/http/api/handlers/handler.js'
import { DEFAULT_PAGE_ROWS, MAX_SHOWN_SESSIONS } from '../../doors/http/api/routes.js'
import { claimDefect } from '../../kernel/identity/index.js'
import type { Revocation } from '../../kernel/identity/revocations.js'
import type { Cluster } from './cluster.js'
import type { DisconnectTarget } from './operator-message.js'

export function operatorRoutes(
  cluster: Cluster,
): Pick<FeatureRoutes, 'connections' | 'user' | 'disconnect' | 'revoke' | 'info'> {
  return {
    connections: async ({ node }, { query }) => {
      const { node: named, after, limit = DEFAULT_PAGE_ROWS, ...match } = query
      return { node: node.name, ...(await cluster.connections.page({ node: named, after, limit, match })) }
    },
    user: async (_, { query }) => {
      const asked = { match: { user: query.user }, after: -1, limit: MAX_SHOWN_SESSIONS }
      const { found, missing } = await cluster.connections.find(asked)
      const places = Array.from(found, ([name, { count, rows }]) => ({
        node: name,
        connections: count,
        sessions: rows.map(({ session }) => session),
      }))
      return { nodes: places.filter(({ connections }) => connections > 0), missing }
    },
    disconnect: async ({ node }, { caller, body }) => {
      const { code = 'E_DISCONNECTED_BY_OPERATOR' } = body
      const target: DisconnectTarget =
        'user' in body
          ? { by: 'user', value: body.user }
          : 'session' in body
            ? { by: 'session', value: body.session }
            : { by: 'address', value: body.address }
      node.operated(caller, 'disconnect', `${target.by} ${target.value}`)
      return { node: node.name, disconnected: await cluster.disconnect(target, code) }
    },
    revoke: async ({ node }, { caller, body }) => {
      const { until } = body
      const revocation: Revocation =
        'user' in body
          ? { by: 'user', value: body.user, until, issuedUntil: Math.floor(Date.now() / 1_000) }
          : { by: 'token', value: body.tokenId, until }
      node.operated(caller, 'revoke', `${revocation.by} ${revocation.value}`)
      // No token with such a claim is accepted, so there is nothing to revoke.
      if (claimDefect(revocation.value) !== undefined) return { isKept: false }
      return { isKept: (await cluster.revoke(revocation)) !== 'over' }
    },
    info: async ({ node }) => ({ node: node.name, ...(await cluster.nodes()) }),
  }
}
