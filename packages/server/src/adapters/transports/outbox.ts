import type { OutboxLevel } from '../../kernel/ports/transport.js'
import { Backlog, type Droppable, type LeftOut } from './backlog.js'
import type { Connection } from './connection.js'

/**
 * Bytes after which a connection is written before the end of the turn. This limits the memory here, and a burst reaches
 * the kernel before it counts against `maxOutboxBytes`.
 */
const GATHER_BYTES = 64 * 1024

/** Share of `maxOutboxBytes` of the level `low`. */
const LOW_SHARE = 1 / 4

export interface OutboxEvents<Member> {
  /** More than `maxOutboxBytes` wait for a connection; the caller closes it. */
  overflow(connection: Member): void
  /** No more waits than {@link Outbox.await} was called for. */
  drained(connection: Member): void
  /** The peer has taken something that waited; only of a transport that cannot tell by itself. */
  progress?(connection: Member): void
  /** The connection has a backlog from now on, or no longer. */
  held?(connection: Member, isHeld: boolean): void
}

/** Collects the frames of one turn of the event loop and writes them at its end: one write per connection and turn. */
export abstract class Outbox<Member extends Connection<never, Piece>, Piece> {
  protected readonly maxOutboxBytes: number
  protected readonly events: OutboxEvents<Member>
  protected deliveredCount = 0
  protected sentByteCount = 0
  /** Messages that were left out for connections that lagged. */
  readonly #leftOut: LeftOut = { conflatedCount: 0, droppedCount: 0 }
  readonly #dirty: Member[] = []
  #turnEnd: NodeJS.Immediate | undefined

  constructor(maxOutboxBytes: number, events: OutboxEvents<Member>) {
    this.maxOutboxBytes = maxOutboxBytes
    this.events = events
  }

  /** Adds a frame to those of this turn. @returns Bytes that are collected. */
  protected abstract collect(connection: Member, frame: Piece): number

  /** Writes the collected frames. @returns `false`: there were none. */
  protected abstract write(connection: Member): boolean

  /** Whether frames that may be left out wait here, because the socket is full. */
  protected abstract lags(connection: Member): boolean

  protected abstract byteLengthOf(frame: Piece): number

  /** The frames of all connections of the turn are written next. */
  protected endTurn(): void {
    // Nothing to prepare.
  }

  /** More waits than the sink wants to know of. */
  protected stillWaits(_connection: Member): void {
    // The next write tells.
  }

  /** @param droppable The message may be left out if the connection lags. */
  push(connection: Member, frame: Piece, droppable?: Droppable): void {
    if (!connection.isOpen) return
    this.deliveredCount++
    if (connection.backlog !== undefined || (droppable !== undefined && this.lags(connection))) {
      this.#hold(connection, frame, droppable)
    } else if (this.collect(connection, frame) >= GATHER_BYTES) this.flush(connection)
    else this.#markDirty(connection)
  }

  flush(connection: Member): void {
    if (this.write(connection) && connection.outboxBytes > this.maxOutboxBytes) this.events.overflow(connection)
  }

  /** Reports the connection once no more than this waits, at the earliest at the end of the turn. */
  await(connection: Member, level: OutboxLevel): void {
    connection.awaitedLevel = level
    this.#markDirty(connection)
  }

  /** Something was written to a connection. */
  checkLevel(connection: Member): void {
    const { awaitedLevel } = connection
    if (awaitedLevel === undefined || connection.isClosed) return
    const maxBytes = awaitedLevel === 'empty' ? 0 : this.maxOutboxBytes * LOW_SHARE
    if (connection.outboxBytes > maxBytes) {
      this.stillWaits(connection)
      return
    }
    connection.awaitedLevel = undefined
    this.events.drained(connection)
  }

  stats() {
    return { ...this.#leftOut, deliveredCount: this.deliveredCount, sentByteCount: this.sentByteCount }
  }

  /** Keeps a frame of a connection that lags where it may still be left out, or where it stays behind such frames. */
  #hold(connection: Member, frame: Piece, droppable: Droppable | undefined): void {
    if (connection.backlog === undefined) this.flush(connection)
    if (!connection.isOpen) return
    if (connection.backlog === undefined) {
      connection.backlog = new Backlog(this.maxOutboxBytes, this.#leftOut)
      this.events.held?.(connection, true)
    }
    connection.backlog.push(frame, this.byteLengthOf(frame), droppable)
    if (connection.outboxBytes > this.maxOutboxBytes) {
      connection.backlog = undefined
      this.events.overflow(connection)
    }
  }

  #markDirty(connection: Member): void {
    if (connection.isDirty) return
    connection.isDirty = true
    this.#dirty.push(connection)
    // The check phase follows the poll phase, so the results of one poll go out together in the same turn.
    this.#turnEnd ??= setImmediate(() => this.#flushAll())
  }

  #flushAll(): void {
    this.#turnEnd = undefined
    this.endTurn()
    for (const connection of this.#dirty) {
      connection.isDirty = false
      this.flush(connection)
      this.checkLevel(connection)
    }
    this.#dirty.length = 0
  }
}

/** RFC 6455 §5.2: bytes of the header of an unmasked frame. */
export function frameHeaderBytes(payloadBytes: number): number {
  if (payloadBytes < 126) return 2
  return payloadBytes < 65_536 ? 4 : 10
}
