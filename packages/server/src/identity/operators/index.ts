export { Cluster, type ClusterStats } from './cluster.js'
export {
  DISCONNECT_CODES,
  type DisconnectCode,
  type DisconnectTarget,
  type NodeSummary,
} from './operator-message.js'
export type { Revocations } from './revocations.js'
export { MAX_UNIX_S, type Revocation } from './revocations.js'
