import { type Backlog, LAG_BYTES } from '../backlog.js'
import { Outbox } from '../outbox.js'
import { Batch } from './batch.js'
import type { WsConnection } from './connection.js'
import { WsFrame } from './frame.js'

/**
 * Bytes that are given to a socket that has not written all it has. Node reports a write only when all of it is written,
 * so with more the outbox would look fuller than it is.
 */
const FEED_BYTES = 128 * 1024

/** A write that takes longer has waited for the peer. */
const WAITED_MS = 50

const NOTHING = Buffer.alloc(0)

/**
 * The outbox of WebSockets. Connections that get the same frames of a turn share the bytes.
 */
export class WsOutbox extends Outbox<WsConnection, Buffer> {
  /** The batch of the latest frame that was the first one of a connection in this turn. */
  #firstBatch: Batch | undefined

  /** Gives everything to the socket, before the close frame. */
  release(connection: WsConnection): void {
    if (connection.batch !== undefined) {
      this.sentByteCount += connection.batch.byteLength
      connection.queue.push(connection.batch.bytes)
      connection.batch = undefined
    }
    connection.socket.cork()
    for (const bytes of connection.queue.take()) connection.socket.write(bytes)
    for (const bytes of connection.backlog?.frames(plainFrame) ?? []) connection.socket.write(bytes)
    connection.socket.uncork()
    this.clear(connection)
  }

  /** Drops what waits for a connection that has closed. */
  clear(connection: WsConnection): void {
    connection.batch = undefined
    connection.backlog = undefined
    connection.queue.take()
  }

  protected collect(connection: WsConnection, bytes: Buffer): number {
    connection.batch = connection.batch === undefined ? this.#batchOf(bytes) : connection.batch.with(bytes)
    return connection.batch.byteLength
  }

  protected write(connection: WsConnection): boolean {
    const { batch } = connection
    if (batch === undefined) return false
    connection.batch = undefined
    this.sentByteCount += batch.byteLength
    if (connection.isWriting) connection.queue.push(batch.bytes)
    else this.#give(connection, batch.bytes)
    return true
  }

  /** The socket has not written all it has. Node never says so at once for an encrypted one, so a little does not count. */
  protected lags(connection: WsConnection): boolean {
    return connection.isWriting && connection.outboxBytes > LAG_BYTES
  }

  protected byteLengthOf(bytes: Buffer): number {
    return bytes.length
  }

  protected override endTurn(): void {
    this.#firstBatch = undefined
  }

  /** The socket has written all it had: nothing that was held until now is left out any more. */
  #commit(connection: WsConnection, backlog: Backlog<Buffer>): void {
    connection.backlog = undefined
    const bytes = Buffer.concat([...backlog.frames(plainFrame)])
    this.sentByteCount += bytes.length
    this.#give(connection, bytes)
  }

  #batchOf(frame: Buffer): Batch {
    if (this.#firstBatch?.bytes !== frame) this.#firstBatch = new Batch(frame)
    return this.#firstBatch
  }

  #give(connection: WsConnection, bytes: Buffer): void {
    const { socket } = connection
    // Node never ends a write to an encrypted socket at once.
    if (connection.isEncrypted) {
      this.#begin(connection)
      socket.write(bytes, () => this.#written(connection))
      return
    }
    socket.write(bytes)
    // Usually the kernel has taken all of it by now; a callback would cost more than this question.
    if (socket.writableLength === 0) return
    this.#begin(connection)
    socket.write(NOTHING, () => this.#written(connection))
  }

  #begin(connection: WsConnection): void {
    connection.isWriting = true
    connection.writeBeganMs = performance.now()
  }

  #written(connection: WsConnection): void {
    connection.isWriting = false
    // A peer that is gone takes nothing, but the kernel takes what an encrypted one is sent, soon.
    const waited = !connection.isEncrypted || performance.now() - connection.writeBeganMs > WAITED_MS
    if (waited) this.events.progress?.(connection)
    if (!connection.queue.isEmpty) this.#feed(connection)
    else if (connection.backlog !== undefined && !connection.isClosed) this.#commit(connection, connection.backlog)
    this.checkLevel(connection)
  }

  #feed(connection: WsConnection): void {
    const { queue, socket } = connection
    this.#begin(connection)
    socket.cork()
    const parts = queue.take(FEED_BYTES)
    for (const part of parts.slice(0, -1)) socket.write(part)
    socket.write(parts.at(-1) ?? NOTHING, () => this.#written(connection))
    socket.uncork()
  }
}

function plainFrame(text: string): Buffer {
  return new WsFrame(text, false).plain
}
