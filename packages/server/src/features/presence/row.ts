import { isListener, isMember } from '../../kernel/identity/access.js'
import { tellRevoked } from '../../kernel/session/handlers/auth.js'
import type { Feature } from '../feature.js'
import { Presence, type PresenceContext, type PresenceStats } from './presence.js'
import { presenceVerb } from './verb.js'

export const presence = {
  metrics: {
    webmq_presence_members: 'memberCount: Presence members of all nodes that this node knows.',
    webmq_presence_own_members: 'ownMemberCount: Presence members of connections of this node.',
    webmq_presence_watched_keys: 'watchedKeyCount: Keys whose members are watched by connections of this node.',
    webmq_presence_peers: 'peerCount: Other nodes that take part in presence.',
    webmq_presence_dropped_total:
      'droppedCount: Presence messages that could not be read, and members of other nodes above the limit.',
  },
  open(context: PresenceContext) {
    const presence = new Presence(context)
    return {
      verbs: { presence: presenceVerb(presence) },
      revoke(session) {
        const own = presence.known(session.connection)
        const revoked = own?.revoke(
          (key) => isMember(session, key),
          (key) => isListener(session, key),
        )
        for (const key of revoked ?? []) tellRevoked(session, `presence ${key}`, { key })
      },
      closed: ({ connection }, isWanted) => presence.closed(connection, isWanted),
      stop: () => presence.stop(),
      stats: () => presence.stats(),
      routes: async () => (await import('./routes.js')).presenceRoutes(presence),
      /** See {@link Presence.list}. */
      list: (key: string) => presence.list(key),
    }
  },
} satisfies Feature<PresenceContext, PresenceStats>
