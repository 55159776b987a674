// What transports on the event loop share, for one in a package of its own: `webmq-server/transports`.

export { type Backlog, LAG_BYTES } from './backlog.js'
export { connectionLimit } from './connection-limit.js'
export { Connections } from './connections.js'
export { Keepalive } from './keepalive.js'
export { Outbox, type OutboxEvents } from './outbox.js'
export { SinkCalls } from './sink-calls.js'
export { acceptedExtensions } from './upgrade/extensions.js'
export type { UpgradeGate } from './upgrade/gate.js'
export { asksForWebSocket, findHandshakeFault, type HandshakeFault, isToken } from './upgrade/handshake.js'
export { checkHeaders, checkRejection, type RejectionDetails, rejectionOf } from './upgrade/rejection.js'
export { headBytes, type RequestHead, upgradeRequest, valuesOf } from './upgrade/request-head.js'
