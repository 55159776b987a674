// What transports on the event loop share, for one in a package of its own: `webmq-server/transports`.

export { bindError } from './addresses.js'
export type { Droppable } from './backlog.js'
export { LAG_BYTES } from './backlog.js'
export { secureContextsOf, withFiles } from './certificates.js'
export { Connection, type ConnectionOwner } from './connection.js'
export type { Connections } from './connections.js'
export { EventLoopTransport } from './event-loop-transport.js'
export { Keepalive } from './keepalive.js'
export { frameHeaderBytes, Outbox, type OutboxEvents } from './outbox.js'
export type { SinkCalls } from './sink-calls.js'
export {
  acceptedExtensions,
  asksForWebSocket,
  findHandshakeFault,
  type HandshakeFault,
  headBytes,
  type RequestHead,
  UPGRADE_REQUIRED,
  valuesOf,
} from './upgrade/handshake.js'
export { PendingUpgrades } from './upgrade/pending.js'
export { rejectionOf } from './upgrade/rejection.js'
