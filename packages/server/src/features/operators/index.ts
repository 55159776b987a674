export { Cluster, type ClusterStats } from './cluster.js'
export { ALL, MAX_CLAIM_CHARS, MAX_PAGE_ROWS, ROW, SESSION, USER } from './connection-list.js'
export {
  DISCONNECT_CODES,
  type DisconnectCode,
  type DisconnectTarget,
  type NodeSummary,
  SUMMARY,
} from './operator-message.js'
