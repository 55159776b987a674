import type { OutboxLevel } from '../../ports/transport.js'
import { Backlog, LAG_BYTES, type LeftOut } from '../backlog.js'
import type { Droppable } from '../overflows.js'
import type { UwsConnection, UwsFrame } from './connection.js'

/**
 * Bytes after which a connection is written before the end of the turn. This limits the memory here, and a burst reaches
 * the kernel before it counts against `maxOutboxBytes`.
 */
const GATHER_BYTES = 64 * 1024

/**
 * From this size on, uWebSockets.js has a fast path for connections without a subscription. In older releases it loses
 * bytes when the kernel accepts only part of a frame, which breaks the connection. A subscription to an unused topic
 * avoids the fast path.
 */
const SHORT_CUT_BYTES = 16 * 1024
export const NO_TOPIC = 'none'

/** Share of `maxOutboxBytes` of the level `low`. */
const LOW_SHARE = 1 / 4

/** Events of {@link UwsOutbox}. */
export interface UwsOutboxEvents {
  /** More than `maxOutboxBytes` wait for a connection; the caller closes it. */
  overflow(connection: UwsConnection): void
  /** No more waits than {@link UwsOutbox.await} was called for. */
  drained(connection: UwsConnection): void
  /** The connection has a backlog from now on, or no longer. */
  held(connection: UwsConnection, isHeld: boolean): void
}

/** Options of {@link UwsOutbox}. */
export interface UwsOutboxLimits {
  readonly maxOutboxBytes: number
  /** Smallest message to compress; infinite for none. */
  readonly compressFromBytes: number
}

/**
 * Collects the frames of one turn of the event loop and passes them to uWebSockets.js, corked, at its end: one write per
 * connection and turn. At 8 frames per turn this takes a third of the CPU of a write per frame (1.3 instead of 4.1 us).
 */
export class UwsOutbox {
  readonly #limits: UwsOutboxLimits
  readonly #events: UwsOutboxEvents
  readonly #dirty: UwsConnection[] = []
  /** Connections with collected frames, and others. */
  #collected: UwsConnection[] = []
  #turnEnd: NodeJS.Immediate | undefined
  /** Messages that were left out for connections that lagged. */
  readonly leftOut: LeftOut = { conflatedCount: 0, droppedCount: 0 }
  #deliveredCount = 0
  #sentByteCount = 0

  constructor(limits: UwsOutboxLimits, events: UwsOutboxEvents) {
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
  push(connection: UwsConnection, frame: UwsFrame, droppable?: Droppable): void {
    this.#deliveredCount++
    if (connection.backlog !== undefined || (droppable !== undefined && lags(connection))) {
      this.#hold(connection, frame, droppable)
      return
    }
    this.#collect(connection, frame)
    if (connection.framesBytes >= GATHER_BYTES) this.flush(connection)
    else this.#markDirty(connection)
  }

  /** Writes the collected frames of one connection. */
  flush(connection: UwsConnection): void {
    const { frames, socket } = connection
    if (socket === undefined || frames.length === 0) return
    // A single frame is one write anyway and needs no cork, unless published messages go before it.
    if (frames.length === 1 && !connection.isSubscribed) this.#sendAll(connection)
    else socket.cork(() => this.#sendAll(connection))
    if (socket.getBufferedAmount() > this.#limits.maxOutboxBytes) this.#events.overflow(connection)
  }

  /** Writes the collected frames of all connections, before something is published to many. */
  flushCollected(): void {
    if (this.#collected.length === 0) return
    const collected = this.#collected
    this.#collected = []
    for (const connection of collected) this.flush(connection)
  }

  /** Counts a message that was published to this many connections. */
  countSent(connectionCount: number, payloadBytes: number): void {
    this.#deliveredCount += connectionCount
    this.#sentByteCount += connectionCount * (payloadBytes + headerBytes(payloadBytes))
  }

  /** uWebSockets.js has written, or tried to write, something to a connection. */
  checkWritten(connection: UwsConnection): void {
    if (connection.socket === undefined) return
    if (connection.socket.getBufferedAmount() > this.#limits.maxOutboxBytes) this.#events.overflow(connection)
    else this.checkLevel(connection)
  }

  /** Writes everything, before a close frame. */
  release(connection: UwsConnection): void {
    const wasHeld = connection.backlog !== undefined
    this.#commit(connection)
    this.flush(connection)
    if (wasHeld) this.#events.held(connection, false)
  }

  /** uWebSockets.js has written something: what was held is not left out any more once little waits before it. */
  drained(connection: UwsConnection): void {
    if (connection.backlog !== undefined && !lags(connection)) this.release(connection)
    this.checkLevel(connection)
  }

  flushAll(): void {
    clearImmediate(this.#turnEnd)
    this.#turnEnd = undefined
    this.#collected = [] // All of them are dirty.
    for (const connection of this.#dirty) {
      connection.isDirty = false
      this.flush(connection)
      this.checkLevel(connection)
    }
    this.#dirty.length = 0
  }

  /** Reports the connection once no more than this waits, at the earliest at the end of the turn. */
  await(connection: UwsConnection, level: OutboxLevel): void {
    connection.awaitedLevel = level
    this.#markDirty(connection)
  }

  /** Something was written to a connection. */
  checkLevel(connection: UwsConnection): void {
    const { awaitedLevel, socket } = connection
    if (awaitedLevel === undefined || socket === undefined) return
    const maxBytes = awaitedLevel === 'empty' ? 0 : this.#limits.maxOutboxBytes * LOW_SHARE
    if (connection.outboxBytes > maxBytes) return
    connection.awaitedLevel = undefined
    this.#events.drained(connection)
  }

  /** Drops the collected frames of a closed connection. */
  clear(connection: UwsConnection): void {
    connection.frames.length = 0
    connection.framesBytes = 0
    connection.backlog = undefined
  }

  #collect(connection: UwsConnection, frame: UwsFrame): void {
    if (connection.frames.length === 0) this.#collected.push(connection)
    connection.frames.push(frame)
    connection.framesBytes += frame.data.byteLength
  }

  /** Keeps a frame of a connection that lags where it may still be left out, or where it stays behind such frames. */
  #hold(connection: UwsConnection, frame: UwsFrame, droppable: Droppable | undefined): void {
    if (connection.backlog === undefined) this.flush(connection)
    if (connection.socket === undefined) return
    if (connection.backlog === undefined) {
      connection.backlog = new Backlog(this.#limits.maxOutboxBytes, this.leftOut)
      this.#events.held(connection, true)
    }
    connection.backlog.push(frame, frame.data.byteLength, droppable)
    if (connection.outboxBytes > this.#limits.maxOutboxBytes) {
      connection.backlog = undefined
      this.#events.overflow(connection)
    }
  }

  #commit(connection: UwsConnection): void {
    const { backlog } = connection
    connection.backlog = undefined
    for (const frame of backlog?.frames(textFrame) ?? []) this.#collect(connection, frame)
  }

  #markDirty(connection: UwsConnection): void {
    if (connection.isDirty) return
    connection.isDirty = true
    this.#dirty.push(connection)
    // The check phase follows the poll phase, so the results of one poll go out together in the same turn.
    this.#turnEnd ??= setImmediate(() => this.flushAll())
  }

  #sendAll(connection: UwsConnection): void {
    for (const { data, isBinary } of connection.frames) {
      if (data.byteLength >= SHORT_CUT_BYTES && !connection.isSubscribed) {
        connection.isSubscribed = connection.socket?.subscribe(NO_TOPIC) ?? false
      }
      // Connections without compression ignore this flag.
      connection.socket?.send(data, isBinary, data.byteLength >= this.#limits.compressFromBytes)
      this.#sentByteCount += data.byteLength + headerBytes(data.byteLength)
    }
    connection.frames.length = 0
    connection.framesBytes = 0
  }
}

/** uWebSockets.js holds bytes that the kernel did not take. */
function lags({ socket }: UwsConnection): boolean {
  return socket !== undefined && socket.getBufferedAmount() > LAG_BYTES
}

function textFrame(text: string): UwsFrame {
  return { data: Buffer.from(text), isBinary: false }
}

/** RFC 6455 §5.2: the header of an unmasked frame. */
function headerBytes(payloadBytes: number): number {
  if (payloadBytes < 126) return 2
  return payloadBytes < 65_536 ? 4 : 10
}
