import type { GroupId } from '../ports/transport.js'
import type { Connection } from './connection.js'

export class Groups<Member extends Connection<never, unknown>> {
  readonly #members = new Map<GroupId, Set<Member>>()
  #multicastCount = 0

  join(connection: Member, group: GroupId): void {
    const members = this.#members.get(group)
    if (members === undefined) this.#members.set(group, new Set([connection]))
    else members.add(connection)
    connection.groups.add(group)
  }

  leave(connection: Member, group: GroupId): void {
    connection.groups.delete(group)
    const members = this.#members.get(group)
    members?.delete(connection)
    if (members?.size === 0) this.#members.delete(group)
  }

  leaveAll(connection: Member): void {
    for (const group of connection.groups) this.leave(connection, group)
  }

  /** The members now and later; the set of a group without members does not get new ones. */
  membersOf(group: GroupId): ReadonlySet<Member> {
    return this.#members.get(group) ?? new Set()
  }

  hasMembers(groups: readonly GroupId[]): boolean {
    return groups.some((group) => this.#members.has(group))
  }

  /**
   * Calls `visit` once for every member of any of the groups. `visit` may close connections.
   * Cost: one step per membership and no allocation, because each connection stores its last multicast.
   */
  forEachMember(groups: readonly GroupId[], visit: (connection: Member) => void): void {
    this.#multicastCount++
    for (const group of groups) {
      for (const connection of this.#members.get(group) ?? []) {
        if (connection.multicast === this.#multicastCount) continue
        connection.multicast = this.#multicastCount
        visit(connection)
      }
    }
  }
}
