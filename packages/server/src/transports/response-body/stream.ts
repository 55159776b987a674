import type { Duplex } from 'node:stream'
import type { ConnectionId, GroupId, OutboxLevel, UpgradeId } from '../../ports/transport.js'

/** State of one accepted event stream. */
export class EventStream {
  readonly id: ConnectionId
  readonly upgrade: UpgradeId
  /** The body of the response ends with it, so events are written to it directly. */
  readonly socket: Duplex
  /** Groups of the connection; written by `Groups`. */
  readonly groups = new Set<GroupId>()
  /** Last multicast to the connection; written by `Groups`. */
  multicast = 0
  /** Has output of this turn. */
  isDirty = false
  /** Bytes that the socket was given. */
  givenBytes = 0
  /** Bytes that it had taken at the last heartbeat, if it was full then. */
  takenBytes: number | undefined
  /** The sink is told when the outbox has fallen to this level. */
  awaitedLevel: OutboxLevel | undefined
  /** Why this side ended it. */
  ending: { readonly code: number; readonly reason: string } | undefined
  /** The sink knows that it is gone. */
  isClosed = false

  constructor(id: ConnectionId, upgrade: UpgradeId, socket: Duplex) {
    this.id = id
    this.upgrade = upgrade
    this.socket = socket
  }
}
