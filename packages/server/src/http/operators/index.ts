export { Cluster, type ClusterStats } from './cluster.js'
export {
  DISCONNECT_CODES,
  type DisconnectCode,
  type DisconnectTarget,
  MAX_SHOWN_SESSIONS,
  type NodeSummary,
  type UserConnections,
} from './operator-message.js'
