import type { Duplex } from 'node:stream'
import type { ConnectionId, UpgradeId } from '../../ports/transport.js'
import { Connection } from '../connection.js'
import type { EventStreams } from './sse.js'

/** A message that a stream gets as it is. */
export interface StreamFrame {
  readonly payload: Uint8Array
}

export class EventStream extends Connection<StreamFrame, Uint8Array> {
  readonly owner: EventStreams
  /** The body of the response ends with it, so events are written to it directly. */
  readonly socket: Duplex
  /** A stream receives nothing. */
  readonly partialBytes = 0
  /** Has output of this turn. */
  isCorked = false
  /** Bytes that the socket was given. */
  givenBytes = 0
  /** Bytes that it had taken at the last heartbeat, if it was full then. */
  takenBytes: number | undefined
  /** Why this side ended it. */
  ending: { readonly code: number; readonly reason: string } | undefined
  /** The sink knows that it is gone. */
  isClosed = false

  constructor(owner: EventStreams, id: ConnectionId, upgrade: UpgradeId, socket: Duplex) {
    super(id, upgrade)
    this.owner = owner
    this.socket = socket
  }

  get isOpen(): boolean {
    return this.ending === undefined
  }

  get outboxBytes(): number {
    return this.socket.writableLength
  }

  /** Ends it without waiting for the peer. */
  destroy(): void {
    this.socket.destroy()
  }
}
