import type { GroupId, GroupOverflow } from '../ports/transport.js'

/** What the groups of a connection say about a message that may be left out. */
export interface Droppable {
  readonly topic: number
  readonly policy: GroupOverflow['policy']
  /** Groups to tell, and what. */
  readonly told: readonly { readonly group: GroupId; readonly notice: string }[]
}

/** The groups whose messages may be left out for members that lag. */
export class Overflows {
  readonly #byGroup = new Map<GroupId, GroupOverflow>()

  set(group: GroupId, overflow: GroupOverflow | undefined): void {
    if (overflow === undefined) this.#byGroup.delete(group)
    else this.#byGroup.set(group, overflow)
  }

  hasAny(groups: readonly GroupId[]): boolean {
    return this.#byGroup.size > 0 && groups.some((group) => this.#byGroup.has(group))
  }

  /** @returns `undefined` if one of the groups that the message reaches the member through does not allow it. */
  droppable(own: ReadonlySet<GroupId>, groups: readonly GroupId[], topic: number): Droppable | undefined {
    let policy: GroupOverflow['policy'] = 'drop-oldest'
    const told: { readonly group: GroupId; readonly notice: string }[] = []
    for (const group of groups) {
      if (!own.has(group)) continue
      const overflow = this.#byGroup.get(group)
      if (overflow === undefined) return undefined
      if (overflow.policy === 'latest') policy = 'latest'
      if (overflow.notice !== undefined) told.push({ group, notice: overflow.notice })
    }
    return { topic, policy, told }
  }
}
