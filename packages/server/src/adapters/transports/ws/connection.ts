import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { ConnectionId, UpgradeId } from '../../../kernel/ports/transport.js'
import { Connection, type ConnectionOwner } from '../connection.js'
import type { Batch } from './batch.js'
import type { WsFrame } from './frame.js'
import { FrameBoundaries } from './frame-boundaries.js'
import { PieceQueue } from './piece-queue.js'

type Owner = ConnectionOwner<WsConnection, WsFrame>

export class WsConnection extends Connection<WsFrame, Buffer> {
  readonly owner: Owner
  readonly websocket: WebSocket
  readonly socket: Socket
  readonly isDeflating: boolean
  readonly isEncrypted: boolean
  /** Frames of this turn; written by `WsOutbox`. */
  batch: Batch | undefined
  /** Bytes that wait until the socket has written what it has. */
  readonly queue = new PieceQueue()
  /** A write to the socket has not ended. */
  isWriting = false
  writeBeganMs = 0
  /** Ticks of `Keepalive`: of the last received data, and of the unanswered ping (0: none). */
  heardTick = 0
  pingTick = 0
  /** Where the current message is; written by `WsReading`. */
  readonly boundaries = new FrameBoundaries()
  /** Tick of `WsReading` of the first byte of the incomplete message; 0: none. */
  messageTick = 0
  turnBytes = 0
  isPaused = false
  /** Code of the close frame that this side sent first. */
  closeCode: number | undefined
  /** The sink knows that it is gone. */
  isClosed = false

  constructor(owner: Owner, id: ConnectionId, upgrade: UpgradeId, websocket: WebSocket, socket: Socket) {
    super(id, upgrade)
    this.owner = owner
    this.websocket = websocket
    this.socket = socket
    this.isDeflating = websocket.extensions !== ''
    this.isEncrypted = 'encrypted' in socket
  }

  get outboxBytes(): number {
    const { batch, backlog, queue, socket } = this
    return (batch?.byteLength ?? 0) + queue.byteLength + socket.writableLength + (backlog?.byteLength ?? 0)
  }

  get isOpen(): boolean {
    return this.closeCode === undefined
  }

  get partialBytes(): number {
    return this.isClosed ? 0 : this.boundaries.partialBytes
  }

  /** Ends it without waiting for the peer. */
  destroy(): void {
    this.websocket.terminate()
  }
}
