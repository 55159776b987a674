import type { SessionTable } from '../../kernel/session/table.js'
import type { Feature } from '../feature.js'
import { Cluster, type ClusterContext, type ClusterStats } from './cluster.js'
import { SessionEnder } from './session-ender.js'

type Context = Omit<ClusterContext, 'sessions' | 'disconnect' | 'revoked'> & { readonly sessions: SessionTable }

export const cluster = {
  metrics: {
    webmq_cluster_peers: 'peerCount: Other nodes that this node knows.',
    webmq_cluster_different_peers:
      'differentCount: Other nodes with other options that all must share, or of another version.',
    webmq_cluster_other_log_peers:
      'otherLogCount: Other nodes that log other keys: while there are any, clients that come back are told a gap.',
    webmq_cluster_clock_apart_seconds: [
      "Largest distance between the clock of another node and this node's; 0 while it is less than 30 s.",
      ({ clockApartMs }) => clockApartMs / 1_000,
    ],
    webmq_cluster_revocations:
      'revocationCount: Revoked tokens and users that this node keeps until the tokens have expired.',
    webmq_cluster_dropped_total:
      'droppedCount: Unreadable messages about these, those of too many nodes, and revocations above the limit.',
  },
  open(context: Context) {
    const ender = new SessionEnder(context.sessions)
    const cluster: Cluster = new Cluster({
      ...context,
      disconnect: (target, code) => ender.disconnect(target, code),
      revoked: () => ender.revoked(cluster.revocations),
    })
    return {
      stop: () => ender.stop(),
      stats: () => cluster.stats(),
      routes: async () => (await import('./routes.js')).operatorRoutes(cluster),
      revocations: cluster.revocations,
    }
  },
} satisfies Feature<Context, ClusterStats>
