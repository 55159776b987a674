import type { HistoryOptions } from '../../ports/history-rules.js'
import type { MeshAddress } from './dialer.js'
import type { ResolveHost } from './dialers.js'
import type { MeshLogger } from './peers.js'

/** Options of a {@link MeshBroker}; those of the same name as in {@link ServerOptions}. */
export interface MeshBrokerOptions extends HistoryOptions {
  /** Address for the other nodes; port 0 picks a free one. */
  readonly listen: MeshAddress
  /** Addresses of the other nodes; this node may be among them. A name stands for all its addresses. */
  readonly peers: readonly MeshAddress[]
  /** Shared by all nodes of the mesh. Keep it secret. */
  readonly secret?: string | undefined
  readonly brokerNamespace: string
  readonly brokerTimeoutMs: number
  readonly brokerStartTimeoutMs: number
  readonly brokerHeartbeatMs: number
  readonly brokerMaxPendingBytes: number
  readonly maxPayloadBytes: number
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
  readonly logger: MeshLogger
  /** Resolves a host name; default: the system's resolver. */
  readonly resolve?: ResolveHost
  /** Interval at which names are resolved again; default 5,000. */
  readonly resolveIntervalMs?: number
  /** Time for a lost link to come back before both nodes report `gap`; default 1,000. */
  readonly relinkMs?: number
}
