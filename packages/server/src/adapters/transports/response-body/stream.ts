import type { Duplex } from 'node:stream'
import type { ConnectionId, UpgradeId } from '../../../kernel/ports/transport.js'
import { Connection, type ConnectionOwner } from '../connection.js'
import { Outbox } from '../outbox.js'

/** A message that a stream gets as it is. */
export interface StreamFrame {
  readonly payload: Uint8Array
}

export class EventStream extends Connection<StreamFrame, Uint8Array> {
  readonly owner: ConnectionOwner<EventStream, StreamFrame>
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
  ending: { readonly code: number; readonly reason: string } | undefined
  /** The sink knows that it is gone. */
  isClosed = false

  constructor(owner: ConnectionOwner<EventStream, StreamFrame>, id: ConnectionId, upgrade: UpgradeId, socket: Duplex) {
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

const NOTHING = Buffer.alloc(0)

/** The outbox of event streams: their sockets collect what is written in a turn. */
export class StreamOutbox extends Outbox<EventStream, Uint8Array> {
  /** Writes bytes that are no message. */
  give(stream: EventStream, bytes: Uint8Array): void {
    stream.givenBytes += bytes.byteLength
    this.sentByteCount += bytes.byteLength
    stream.socket.write(bytes)
  }

  protected collect(stream: EventStream, bytes: Uint8Array): number {
    if (!stream.isCorked) stream.socket.cork()
    stream.isCorked = true
    this.give(stream, bytes)
    return stream.socket.writableLength
  }

  protected write(stream: EventStream): boolean {
    if (!stream.isCorked) return false
    stream.isCorked = false
    stream.socket.uncork()
    return stream.isOpen
  }

  /** Nothing is left out of a stream. */
  protected lags(): boolean {
    return false
  }

  protected byteLengthOf(bytes: Uint8Array): number {
    return bytes.byteLength
  }

  /** Node tells nothing of a write that the kernel takes later, unless more than its own limit waits. */
  protected override stillWaits(stream: EventStream): void {
    stream.socket.write(NOTHING, () => this.checkLevel(stream))
  }
}
