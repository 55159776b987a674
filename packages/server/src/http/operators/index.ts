export { Cluster, type ClusterStats } from './cluster.js'
export {
  DISCONNECT_CODES,
  type DisconnectCode,
  type DisconnectTarget,
  type NodeSummary,
} from './operator-message.js'
