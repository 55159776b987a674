import type { OutboxLevel } from '../../ports/transport.js'
import { Backlog, LAG_BYTES, type LeftOut } from '../backlog.js'
import type { Droppable } from '../overflows.js'
import { Batch } from './batch.js'
import type { WsConnection } from './connection.js'
import { WsFrame } from './frame.js'

/**
 * Bytes after which a connection is written before the end of the turn. This limits the memory here, and a burst reaches
 * the kernel before it counts against `maxOutboxBytes`.
 */
const GATHER_BYTES = 64 * 1024

/**
 * Bytes that are given to a socket that has not written all it has. Node reports a write only when all of it is written,
 * so with more the outbox would look fuller than it is.
 */
const FEED_BYTES = 128 * 1024

/** Share of `maxOutboxBytes` of the level `low`. */
const LOW_SHARE = 1 / 4

const NOTHING = Buffer.alloc(0)

/** Events of {@link WsOutbox}. */
export interface WsOutboxEvents {
  /** More than `maxOutboxBytes` wait for a connection; the caller closes it. */
  overflow(connection: WsConnection): void
  /** No more waits than {@link WsOutbox.await} was called for. */
  drained(connection: WsConnection): void
}

/** Options of {@link WsOutbox}. */
export interface WsOutboxLimits {
  readonly maxOutboxBytes: number
  /** Smallest message to compress; infinite for none. */
  readonly compressFromBytes: number
}

/**
 * Collects the frames of one turn of the event loop, and writes them at its end: one write per connection and turn.
 * Connections that get the same frames share the bytes.
 */
export class WsOutbox {
  readonly #limits: WsOutboxLimits
  readonly #events: WsOutboxEvents
  readonly #dirty: WsConnection[] = []
  /** The batch of the latest frame that was the first one of a connection in this turn. */
  #firstBatch: Batch | undefined
  #turnEnd: NodeJS.Immediate | undefined
  /** Messages that were left out for connections that lagged. */
  readonly leftOut: LeftOut = { conflatedCount: 0, droppedCount: 0 }
  #deliveredCount = 0
  #sentByteCount = 0

  constructor(limits: WsOutboxLimits, events: WsOutboxEvents) {
    this.#limits = limits
    this.#events = events
  }

  get deliveredCount(): number {
    return this.#deliveredCount
  }

  get sentByteCount(): number {
    return this.#sentByteCount
  }

  /** @param droppable The message may be left out if the connection lags. */
  push(connection: WsConnection, frame: WsFrame, droppable?: Droppable): void {
    const isCompressed = connection.isDeflating && frame.payloadBytes >= this.#limits.compressFromBytes
    const bytes = isCompressed ? frame.deflated : frame.plain
    this.#deliveredCount++
    if (connection.backlog !== undefined || (droppable !== undefined && lags(connection))) {
      this.#hold(connection, bytes, droppable)
      return
    }
    connection.batch = connection.batch === undefined ? this.#batchOf(bytes) : connection.batch.with(bytes)
    if (connection.batch.byteLength >= GATHER_BYTES) this.flush(connection)
    else this.#markDirty(connection)
  }

  /** Writes the collected frames of one connection. */
  flush(connection: WsConnection): void {
    const { batch } = connection
    if (batch === undefined) return
    connection.batch = undefined
    this.#sentByteCount += batch.byteLength
    if (connection.isWriting) {
      connection.queue.push(batch.bytes)
      connection.queuedBytes += batch.byteLength
    } else this.#write(connection, batch.bytes)
    if (connection.outboxBytes > this.#limits.maxOutboxBytes) this.#events.overflow(connection)
  }

  /** Gives everything to the socket, before the close frame. */
  release(connection: WsConnection): void {
    if (connection.batch !== undefined) {
      this.#sentByteCount += connection.batch.byteLength
      connection.queue.push(connection.batch.bytes)
      connection.batch = undefined
    }
    connection.socket.cork()
    for (const bytes of connection.queue) connection.socket.write(bytes)
    for (const bytes of connection.backlog?.frames(plainFrame) ?? []) connection.socket.write(bytes)
    connection.socket.uncork()
    this.clear(connection)
  }

  /** Reports the connection once no more than this waits, at the earliest at the end of the turn. */
  await(connection: WsConnection, level: OutboxLevel): void {
    connection.awaitedLevel = level
    this.#markDirty(connection)
  }

  /** Drops what waits for a connection that has closed. */
  clear(connection: WsConnection): void {
    connection.batch = undefined
    connection.backlog = undefined
    connection.queue.length = 0
    connection.queuedBytes = 0
  }

  /** Keeps a frame of a connection that lags where it may still be left out, or where it stays behind such frames. */
  #hold(connection: WsConnection, bytes: Buffer, droppable: Droppable | undefined): void {
    if (connection.backlog === undefined) this.flush(connection)
    if (connection.closeCode !== undefined) return
    connection.backlog ??= new Backlog(this.#limits.maxOutboxBytes, this.leftOut)
    connection.backlog.push(bytes, bytes.length, droppable)
    if (connection.outboxBytes > this.#limits.maxOutboxBytes) {
      connection.backlog = undefined
      this.#events.overflow(connection)
    }
  }

  /** The socket has written all it had: nothing that was held until now is left out any more. */
  #commit(connection: WsConnection, backlog: Backlog<Buffer>): void {
    connection.backlog = undefined
    const bytes = Buffer.concat([...backlog.frames(plainFrame)])
    this.#sentByteCount += bytes.length
    this.#write(connection, bytes)
  }

  #batchOf(frame: Buffer): Batch {
    if (this.#firstBatch?.bytes !== frame) this.#firstBatch = new Batch(frame)
    return this.#firstBatch
  }

  #markDirty(connection: WsConnection): void {
    if (connection.isDirty) return
    connection.isDirty = true
    this.#dirty.push(connection)
    // The check phase follows the poll phase, so the results of one poll go out together in the same turn.
    this.#turnEnd ??= setImmediate(() => this.#flushAll())
  }

  #flushAll(): void {
    this.#turnEnd = undefined
    this.#firstBatch = undefined
    for (const connection of this.#dirty) {
      connection.isDirty = false
      this.flush(connection)
      this.#checkLevel(connection)
    }
    this.#dirty.length = 0
  }

  #write(connection: WsConnection, bytes: Buffer): void {
    const { socket } = connection
    // Node never ends a write to an encrypted socket at once.
    if (connection.isEncrypted) {
      connection.isWriting = true
      socket.write(bytes, () => this.#written(connection))
      return
    }
    socket.write(bytes)
    // Usually the kernel has taken all of it by now; a callback would cost more than this question.
    if (socket.writableLength === 0) return
    connection.isWriting = true
    socket.write(NOTHING, () => this.#written(connection))
  }

  #written(connection: WsConnection): void {
    connection.isWriting = false
    if (connection.queue.length > 0) this.#feed(connection)
    else if (connection.backlog !== undefined && !connection.isClosed) this.#commit(connection, connection.backlog)
    this.#checkLevel(connection)
  }

  #feed(connection: WsConnection): void {
    const { queue, socket } = connection
    let count = 0
    let bytes = 0
    while (count < queue.length && bytes < FEED_BYTES) bytes += queue[count++]?.length ?? 0
    connection.queuedBytes -= bytes
    connection.isWriting = true
    socket.cork()
    const parts = queue.splice(0, count)
    for (const part of parts.slice(0, -1)) socket.write(part)
    socket.write(parts.at(-1) ?? NOTHING, () => this.#written(connection))
    socket.uncork()
  }

  #checkLevel(connection: WsConnection): void {
    const { awaitedLevel } = connection
    if (awaitedLevel === undefined || connection.isClosed) return
    const maxBytes = awaitedLevel === 'empty' ? 0 : this.#limits.maxOutboxBytes * LOW_SHARE
    if (connection.outboxBytes > maxBytes) return
    connection.awaitedLevel = undefined
    this.#events.drained(connection)
  }
}

/** The socket has not written all it has. Node never says so at once for an encrypted one, so a little does not count. */
function lags(connection: WsConnection): boolean {
  return connection.isWriting && connection.outboxBytes > LAG_BYTES
}

function plainFrame(text: string): Buffer {
  return new WsFrame(text, false).plain
}
