import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { ConnectionId, GroupId, OutboxLevel, UpgradeId } from '../../ports/transport.js'
import type { Backlog } from '../backlog.js'
import type { AnyConnection } from '../connections.js'
import type { OutboxMember } from '../outbox.js'
import type { Droppable } from '../overflows.js'
import type { Batch } from './batch.js'
import type { WsFrame } from './frame.js'
import { FrameBoundaries } from './frame-boundaries.js'
import type { WebSockets } from './websockets.js'

/** State of one accepted WebSocket. Each part of this transport writes only its own fields. */
export class WsConnection implements AnyConnection<WsFrame>, OutboxMember<Buffer> {
  readonly #owner: WebSockets
  readonly id: ConnectionId
  readonly upgrade: UpgradeId
  readonly websocket: WebSocket
  readonly socket: Socket
  /** Whether permessage-deflate was negotiated. */
  readonly isDeflating: boolean
  readonly isEncrypted: boolean
  /** Groups of the connection; written by `Groups`. */
  readonly groups = new Set<GroupId>()
  /** Last multicast to the connection; written by `Groups`. */
  multicast = 0
  /** Frames of this turn; written by `WsOutbox`. */
  batch: Batch | undefined
  /** Bytes that wait until the socket has written what it has. */
  readonly queue: Buffer[] = []
  queuedBytes = 0
  /** What waits behind the queue of a connection that lags, and may in part be left out. */
  backlog: Backlog<Buffer> | undefined
  /** A write to the socket has not ended. */
  isWriting = false
  isDirty = false
  /** The sink is told when the outbox has fallen to this level. */
  awaitedLevel: OutboxLevel | undefined
  /** Ticks of `Keepalive`: of the last received data, and of the unanswered ping (0: none). */
  heardTick = 0
  pingTick = 0
  /** Where the current message is; written by `WsReading`. */
  readonly boundaries = new FrameBoundaries()
  /** Tick of `WsReading` of the first byte of the incomplete message; 0: none. */
  messageTick = 0
  /** Bytes received in this turn. */
  turnBytes = 0
  /** The owner has paused it. */
  isPaused = false
  /** Code of the close frame that this side sent first. */
  closeCode: number | undefined
  /** The sink knows that it is gone. */
  isClosed = false

  constructor(owner: WebSockets, id: ConnectionId, upgrade: UpgradeId, websocket: WebSocket, socket: Socket) {
    this.#owner = owner
    this.id = id
    this.upgrade = upgrade
    this.websocket = websocket
    this.socket = socket
    this.isDeflating = websocket.extensions !== ''
    this.isEncrypted = 'encrypted' in socket
  }

  /** Bytes that wait for the peer. */
  get outboxBytes(): number {
    const { batch, backlog, queuedBytes, socket } = this
    return (batch?.byteLength ?? 0) + queuedBytes + socket.writableLength + (backlog?.byteLength ?? 0)
  }

  get isOpen(): boolean {
    return this.closeCode === undefined
  }

  get partialBytes(): number {
    return this.isClosed ? 0 : this.boundaries.partialBytes
  }

  send(frame: WsFrame, droppable?: Droppable): void {
    this.#owner.push(this, frame, droppable)
  }

  notifyDrained(level: OutboxLevel): void {
    this.#owner.await(this, level)
  }

  pause(): void {
    this.#owner.pause(this)
  }

  resume(): void {
    this.#owner.resume(this)
  }

  close(code: number, reason: string): void {
    this.#owner.close(this, code, reason)
  }

  fail(): void {
    this.#owner.drop(this, 'E_INTERNAL')
  }

  destroy(): void {
    this.websocket.terminate()
  }
}
