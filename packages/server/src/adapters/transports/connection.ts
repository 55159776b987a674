import type { ConnectionId, GroupId, OutboxLevel, UpgradeId } from '../../kernel/ports/transport.js'
import type { Backlog, Droppable } from './backlog.js'

/**
 * State of one accepted connection of a transport on the event loop. Each part of the transport writes only its own
 * fields.
 *
 * `Frame` is a message on its way, `Piece` what the outbox of the connection keeps of it.
 */
export abstract class Connection<Frame, Piece = Frame> {
  readonly id: ConnectionId
  readonly upgrade: UpgradeId
  /** Groups of the connection; written by `Connections`. */
  readonly groups = new Set<GroupId>()
  /** Last multicast to the connection; written by `Connections`. */
  multicast = 0
  /** What waits for a connection that lags, and may in part be left out; written by `Outbox`. */
  backlog: Backlog<Piece> | undefined
  /** Has something to write at the end of the turn; written by `Outbox`. */
  isDirty = false
  /** The sink is told when the outbox has fallen to this level; written by `Outbox`. */
  awaitedLevel: OutboxLevel | undefined

  constructor(id: ConnectionId, upgrade: UpgradeId) {
    this.id = id
    this.upgrade = upgrade
  }

  abstract readonly owner: ConnectionOwner<this, Frame>
  abstract readonly outboxBytes: number
  abstract readonly partialBytes: number
  /** `false` once this side closes it: nothing more is sent. */
  abstract readonly isOpen: boolean
  /** The sink knows that it is gone. */
  abstract readonly isClosed: boolean

  /** Has no effect once this side closes the connection. */
  send(frame: Frame, droppable?: Droppable): void {
    this.owner.push(this, frame, droppable)
  }

  notifyDrained(level: OutboxLevel): void {
    this.owner.await(this, level)
  }

  pause(): void {
    this.owner.pause(this)
  }

  resume(): void {
    this.owner.resume(this)
  }

  close(code: number, reason: string): void {
    this.owner.close(this, code, reason)
  }

  /** Closes it because the sink threw. */
  fail(): void {
    this.owner.fail(this)
  }
}

/** What does the work of connections of a kind. */
export interface ConnectionOwner<Member, Frame> {
  push(connection: Member, frame: Frame, droppable?: Droppable): void
  await(connection: Member, level: OutboxLevel): void
  pause(connection: Member): void
  resume(connection: Member): void
  close(connection: Member, code: number, reason: string): void
  fail(connection: Member): void
}
