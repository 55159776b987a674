import type { ConnectionId, GroupId, GroupOverflow, OutboxLevel } from '../ports/transport.js'
import { type GroupMember, Groups } from './groups.js'
import { type Droppable, Overflows } from './overflows.js'

/** The part of a connection that {@link Connections} reads. */
export interface Member extends GroupMember {
  readonly id: ConnectionId
  /** Bytes that wait for the peer. */
  readonly outboxBytes: number
}

/** A connection of a transport that has several kinds. */
export interface AnyConnection<Frame> extends Member {
  /** Bytes received of an incomplete message. */
  readonly partialBytes: number
  /** Has no effect once this side closes the connection. */
  send(frame: Frame, droppable?: Droppable): void
  notifyDrained(level: OutboxLevel): void
  pause(): void
  resume(): void
  close(code: number, reason: string): void
  /** Closes it because the sink threw. */
  fail(): void
  /** Ends it without waiting for the peer. */
  destroy(): void
}

/** The connections of a transport that runs on the event loop: by id, in groups, and counted. */
export class Connections<Connection extends Member> {
  readonly groups = new Groups<Connection>()
  readonly #byId = new Map<ConnectionId, Connection>()
  /** Those, and the ones that still send what is queued or wait for the peer. */
  readonly #open = new Set<Connection>()
  readonly #overflows = new Overflows()
  #whenEmpty: (() => void) | undefined
  acceptedCount = 0
  closedCount = 0
  slowConsumerCount = 0

  /** Connections that have a socket, whether the sink knows them or not. */
  get open(): ReadonlySet<Connection> {
    return this.#open
  }

  /** `undefined` once the sink knows that it is gone. */
  get(id: ConnectionId): Connection | undefined {
    return this.#byId.get(id)
  }

  values(): Iterable<Connection> {
    return this.#byId.values()
  }

  add(connection: Connection): void {
    this.#byId.set(connection.id, connection)
    this.#open.add(connection)
  }

  /**
   * Takes a connection out of its groups. The caller tells the sink.
   * @returns `false`: it was removed before.
   */
  remove(connection: Connection): boolean {
    if (!this.#byId.delete(connection.id)) return false
    this.groups.leaveAll(connection)
    this.closedCount++
    return true
  }

  leaveGroups(connection: Connection): void {
    this.groups.leaveAll(connection)
  }

  /** The socket of a connection has closed. */
  forget(connection: Connection): void {
    this.#open.delete(connection)
    if (this.#open.size === 0) this.#whenEmpty?.()
  }

  /** Resolves when all sockets have closed. */
  empty(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenEmpty = resolve
      if (this.#open.size === 0) resolve()
    })
  }

  setOverflow(group: GroupId, overflow: GroupOverflow | undefined): void {
    this.#overflows.set(group, overflow)
  }

  /** Whether a message of this topic may be left out for some members of the groups. */
  mayLeaveOut(groups: readonly GroupId[], topic: number | undefined): topic is number {
    return topic !== undefined && this.#overflows.hasAny(groups)
  }

  /** Calls `push` once for each member of the groups. @param except Gets nothing. */
  multicast(
    groups: readonly GroupId[],
    except: ConnectionId | undefined,
    topic: number | undefined,
    push: (connection: Connection, droppable: Droppable | undefined) => void,
  ): void {
    const dropped = this.mayLeaveOut(groups, topic) ? topic : undefined
    this.groups.forEachMember(groups, (connection) => {
      if (connection.id === except) return
      push(
        connection,
        dropped === undefined ? undefined : this.#overflows.droppable(connection.groups, groups, dropped),
      )
    })
  }

  /** Cost: O(connections). Bytes that several connections wait for count once per receiver. */
  stats() {
    let outboxBytes = 0
    for (const connection of this.#open) outboxBytes += connection.outboxBytes
    const { acceptedCount, closedCount, slowConsumerCount } = this
    return { connections: this.#byId.size, acceptedCount, closedCount, slowConsumerCount, outboxBytes }
  }
}
