import type { ConnectionId, UpgradeId } from 'webmq-server/ports'
import { Connection, type ConnectionOwner } from 'webmq-server/transports'
import type { UwsWebSocket } from './module.js'

/** A message on its way; one object for all its receivers. */
export interface UwsFrame {
  readonly data: Uint8Array
  readonly isBinary: boolean
}

/** State of one accepted WebSocket. */
export class UwsConnection extends Connection<UwsFrame> {
  readonly owner: ConnectionOwner<UwsConnection, UwsFrame>
  /** Frames of this turn; written by `UwsOutbox`. */
  readonly frames: UwsFrame[] = []
  framesBytes = 0
  /** Whether it may get large frames, see `UwsOutbox`. */
  isSubscribed = false
  /** Ticks of `Keepalive`: of the last received data, and of the unanswered ping (0: none). */
  heardTick = 0
  pingTick = 0
  /** uWebSockets.js cannot stop reading from one connection. */
  readonly isPaused = false
  /** It does not tell of incomplete messages. */
  readonly partialBytes = 0
  /** Set while open. uWebSockets.js throws on use of a closed socket, so every close removes it first. */
  socket: UwsWebSocket<UwsConnection> | undefined

  constructor(owner: ConnectionOwner<UwsConnection, UwsFrame>, id: ConnectionId, upgrade: UpgradeId) {
    super(id, upgrade)
    this.owner = owner
  }

  get isOpen(): boolean {
    return this.socket !== undefined
  }

  get isClosed(): boolean {
    return this.socket === undefined
  }

  get outboxBytes(): number {
    return this.framesBytes + (this.backlog?.byteLength ?? 0) + (this.socket?.getBufferedAmount() ?? 0)
  }
}
