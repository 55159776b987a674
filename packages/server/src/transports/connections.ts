import type { ConnectionId, GroupId, GroupOverflow } from '../ports/transport.js'
import type { Connection } from './connection.js'
import { Groups } from './groups.js'
import { type Droppable, Overflows } from './overflows.js'

/** The connections of a transport that runs on the event loop: by id, in groups, and counted. */
export class Connections<Member extends Connection<never, unknown>> {
  readonly groups = new Groups<Member>()
  readonly #byId = new Map<ConnectionId, Member>()
  /** Connections that have a socket, whether the sink knows them or not. */
  readonly open = new Set<Member>()
  readonly #overflows = new Overflows()
  #whenEmpty: (() => void) | undefined
  acceptedCount = 0
  closedCount = 0
  slowConsumerCount = 0

  /** `undefined` once the sink knows that it is gone. */
  get(id: ConnectionId): Member | undefined {
    return this.#byId.get(id)
  }

  values(): Iterable<Member> {
    return this.#byId.values()
  }

  add(connection: Member): void {
    this.#byId.set(connection.id, connection)
    this.open.add(connection)
  }

  /**
   * Takes a connection out of its groups. The caller tells the sink.
   * @returns `false`: it was removed before.
   */
  remove(connection: Member): boolean {
    if (!this.#byId.delete(connection.id)) return false
    this.groups.leaveAll(connection)
    this.closedCount++
    return true
  }

  leaveGroups(connection: Member): void {
    this.groups.leaveAll(connection)
  }

  forget(connection: Member): void {
    this.open.delete(connection)
    if (this.open.size === 0) this.#whenEmpty?.()
  }

  empty(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenEmpty = resolve
      if (this.open.size === 0) resolve()
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
    push: (connection: Member, droppable: Droppable | undefined) => void,
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
    let [outboxBytes, partialBytes] = [0, 0]
    for (const connection of this.open) {
      outboxBytes += connection.outboxBytes
      partialBytes += connection.partialBytes
    }
    const { acceptedCount, closedCount, slowConsumerCount } = this
    return { connections: this.#byId.size, acceptedCount, closedCount, slowConsumerCount, outboxBytes, partialBytes }
  }
}
