export { Cluster, type ClusterStats } from './cluster.js'
export { ALL } from './connection-list.js'
export { MAX_PAGE_ROWS, MAX_SHOWN_LISTENS } from './connection-rows.js'
export { DISCONNECT_CODES, type DisconnectCode, type DisconnectTarget, type NodeSummary } from './operator-message.js'
