import type { OutboxLevel } from '../../ports/transport.js'
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
const NO_TOPIC = 'none'

/** Share of `maxOutboxBytes` of the level `low`. */
const LOW_SHARE = 1 / 4

/** Events of {@link UwsOutbox}. */
export interface UwsOutboxEvents {
  /** More than `maxOutboxBytes` wait for a connection; the caller closes it. */
  overflow(connection: UwsConnection): void
  /** No more waits than {@link UwsOutbox.await} was called for. */
  drained(connection: UwsConnection): void
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
  #turnEnd: NodeJS.Immediate | undefined
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

  push(connection: UwsConnection, frame: UwsFrame): void {
    connection.frames.push(frame)
    connection.framesBytes += frame.data.byteLength
    this.#deliveredCount++
    if (connection.framesBytes >= GATHER_BYTES) this.flush(connection)
    else this.#markDirty(connection)
  }

  /** Writes the collected frames of one connection. */
  flush(connection: UwsConnection): void {
    const { frames, socket } = connection
    if (socket === undefined || frames.length === 0) return
    // A single frame is one write anyway and needs no cork.
    if (frames.length === 1) this.#sendAll(connection)
    else socket.cork(() => this.#sendAll(connection))
    if (socket.getBufferedAmount() > this.#limits.maxOutboxBytes) this.#events.overflow(connection)
  }

  flushAll(): void {
    clearImmediate(this.#turnEnd)
    this.#turnEnd = undefined
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
    const { awaitedLevel, framesBytes, socket } = connection
    if (awaitedLevel === undefined || socket === undefined) return
    const maxBytes = awaitedLevel === 'empty' ? 0 : this.#limits.maxOutboxBytes * LOW_SHARE
    if (framesBytes + socket.getBufferedAmount() > maxBytes) return
    connection.awaitedLevel = undefined
    this.#events.drained(connection)
  }

  /** Drops the collected frames of a closed connection. */
  clear(connection: UwsConnection): void {
    connection.frames.length = 0
    connection.framesBytes = 0
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
    this.clear(connection)
  }
}

/** RFC 6455 §5.2: the header of an unmasked frame. */
function headerBytes(payloadBytes: number): number {
  if (payloadBytes < 126) return 2
  return payloadBytes < 65_536 ? 4 : 10
}
