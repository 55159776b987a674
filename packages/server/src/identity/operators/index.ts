export { Cluster, type ClusterStats } from './cluster.js'
export {
  DISCONNECT_CODES,
  type DisconnectCode,
  type DisconnectTarget,
  type NodeSummary,
} from './operator-message.js'
export { MAX_UNIX_S, type Revocation } from './revocation.js'
export type { Revocations } from './revocations.js'
