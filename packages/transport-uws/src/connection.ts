import type { ConnectionId, GroupId, OutboxLevel, UpgradeId } from 'webmq-server/ports'
import type { Backlog } from 'webmq-server/transports'
import type { UwsWebSocket } from './module.js'

/** A message on its way; one object for all its receivers. */
export interface UwsFrame {
  readonly data: Uint8Array
  readonly isBinary: boolean
}

/** State of one accepted WebSocket. Each part of this transport writes only its own fields. */
export class UwsConnection {
  readonly id: ConnectionId
  readonly upgrade: UpgradeId
  /** Groups of the connection; written by `Groups`. */
  readonly groups = new Set<GroupId>()
  /** Last multicast to the connection; written by `Groups`. */
  multicast = 0
  /** Frames of this turn; written by `UwsOutbox`. */
  readonly frames: UwsFrame[] = []
  framesBytes = 0
  /** What waits behind the bytes of uWebSockets.js for a connection that lags, and may in part be left out. */
  backlog: Backlog<UwsFrame> | undefined
  isDirty = false
  /** The sink is told when the outbox has fallen to this level. */
  awaitedLevel: OutboxLevel | undefined
  /** Whether it may get large frames, see `UwsOutbox`. */
  isSubscribed = false
  /** Ticks of `Keepalive`: of the last received data, and of the unanswered ping (0: none). */
  heardTick = 0
  pingTick = 0
  /** uWebSockets.js cannot stop reading from one connection. */
  readonly isPaused = false
  /** Set while open. uWebSockets.js throws on use of a closed socket, so every close removes it first. */
  socket: UwsWebSocket<UwsConnection> | undefined

  constructor(id: ConnectionId, upgrade: UpgradeId) {
    this.id = id
    this.upgrade = upgrade
  }

  get isOpen(): boolean {
    return this.socket !== undefined
  }

  get isClosed(): boolean {
    return this.socket === undefined
  }

  /** Bytes that wait for the peer. */
  get outboxBytes(): number {
    return this.framesBytes + (this.backlog?.byteLength ?? 0) + (this.socket?.getBufferedAmount() ?? 0)
  }
}
