import type { ConnectionId, GroupId, GroupOverflow } from '../../kernel/ports/transport.js'
import type { Droppable } from './backlog.js'
import type { Connection } from './connection.js'

/** The connections of a transport that runs on the event loop: by id, in groups, and counted. */
export class Connections<Member extends Connection<never, unknown>> {
  readonly #groups = new Map<GroupId, Set<Member>>()
  #multicastCount = 0
  /** The groups whose messages may be left out for members that lag. */
  readonly #overflows = new Map<GroupId, GroupOverflow>()
  readonly #byId = new Map<ConnectionId, Member>()
  /** Connections that have a socket, whether the sink knows them or not. */
  readonly open = new Set<Member>()
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

  /** Takes a connection out of its groups. The caller tells the sink. @returns `false`: it was removed before. */
  remove(connection: Member): boolean {
    if (!this.#byId.delete(connection.id)) return false
    this.leaveGroups(connection)
    this.closedCount++
    return true
  }

  /** @returns The members of the group, now and later. */
  join(connection: Member, group: GroupId): ReadonlySet<Member> {
    const members = this.#groups.get(group) ?? new Set()
    this.#groups.set(group, members.add(connection))
    connection.groups.add(group)
    return members
  }

  leave(connection: Member, group: GroupId): void {
    connection.groups.delete(group)
    const members = this.#groups.get(group)
    members?.delete(connection)
    if (members?.size === 0) this.#groups.delete(group)
  }

  leaveGroups(connection: Member): void {
    for (const group of connection.groups) this.leave(connection, group)
  }

  hasMembers(groups: readonly GroupId[]): boolean {
    return groups.some((group) => this.#groups.has(group))
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
    if (overflow === undefined) this.#overflows.delete(group)
    else this.#overflows.set(group, overflow)
  }

  /** Whether a message of this topic may be left out for some members of the groups. */
  mayLeaveOut(groups: readonly GroupId[], topic: number | undefined): topic is number {
    return topic !== undefined && this.#overflows.size > 0 && groups.some((group) => this.#overflows.has(group))
  }

  /**
   * Calls `push` once for each member of any of the groups, which may close connections.
   * Cost: one step per membership and no allocation, because each connection stores its last multicast.
   * @param except Gets nothing.
   */
  multicast(
    groups: readonly GroupId[],
    except: ConnectionId | undefined,
    topic: number | undefined,
    push: (connection: Member, droppable: Droppable | undefined) => void,
  ): void {
    const dropped = this.mayLeaveOut(groups, topic) ? topic : undefined
    this.#multicastCount++
    for (const group of groups) {
      for (const connection of this.#groups.get(group) ?? []) {
        if (connection.multicast === this.#multicastCount) continue
        connection.multicast = this.#multicastCount
        if (connection.id === except) continue
        push(connection, dropped === undefined ? undefined : this.#droppable(connection.groups, groups, dropped))
      }
    }
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

  /** @returns `undefined` if one of the groups that the message reaches the member through does not allow it. */
  #droppable(own: ReadonlySet<GroupId>, groups: readonly GroupId[], topic: number): Droppable | undefined {
    let policy: GroupOverflow['policy'] = 'drop-oldest'
    const told: string[] = []
    for (const group of groups) {
      if (!own.has(group)) continue
      const overflow = this.#overflows.get(group)
      if (overflow === undefined) return undefined
      if (overflow.policy === 'latest') policy = 'latest'
      if (overflow.notice !== undefined) told.push(overflow.notice)
    }
    return { topic, policy, told }
  }
}
