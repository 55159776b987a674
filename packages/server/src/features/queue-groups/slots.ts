import { refusalOf } from 'webmq-client/protocol'
import { Router } from '../../kernel/patterns/router.js'
import type { GroupId } from '../../kernel/ports/transport.js'
import { isCount, type TableChange, type TableEntries } from '../nodes/index.js'
import { type GroupMember, type SlotKind, type SlotName, slotIdOf } from './group-message.js'
import type { Candidate } from './pick-node.js'
import { nameFrom, nameItem } from './task-message.js'

/** A queue group that has members, here or on other nodes. */
export class Slot {
  readonly name: SlotName
  readonly id: string
  /** Number of its pattern in the table of patterns. */
  readonly route: GroupId
  readonly members: GroupMember[] = []
  readonly remote = new Map<string, number>()
  #next = 0

  constructor(name: SlotName, route: GroupId) {
    this.name = name
    this.id = slotIdOf(name)
    this.route = route
  }

  /** The nodes that have members, but for some. @param own Name of this node. */
  candidates(own: string, excluded: ReadonlySet<string>): Candidate[] {
    const found: Candidate[] = []
    if (this.members.length > 0 && !excluded.has(own)) found.push({ node: own, count: this.members.length })
    for (const [node, count] of this.remote) if (!excluded.has(node)) found.push({ node, count })
    return found
  }

  /**
   * The member whose turn it is. Members that lag are passed over while others do not.
   * Cost: O(1) while nobody lags.
   */
  nextMember(): GroupMember | undefined {
    const { members } = this
    for (let step = 0; step < members.length; step++) {
      const member = members[(this.#next + step) % members.length] as GroupMember
      if (member.isLagging) continue
      this.#next = (this.#next + step + 1) % members.length
      return member
    }
    return members[this.#next++ % Math.max(1, members.length)]
  }
}

/** Queue groups of all nodes that a node knows at most: entries of other nodes are not trusted to be few. */
const MAX_SLOTS = 65_536

export interface SlotChange extends TableChange {
  readonly node: string
  readonly name: SlotName
  /** Its members; 0: none any more. */
  readonly count: number
}

/**
 * The queue groups that this node knows: those of its own members, and those that other nodes have told. Between nodes, an
 * entry of a queue group is the number of members that a node has of it.
 */
export class Slots implements TableEntries<SlotChange> {
  readonly #router = new Router()
  readonly byId = new Map<string, Slot>()
  readonly #byRoute = new Map<GroupId, Slot[]>()
  /** Queue groups of other nodes above the limit. */
  droppedCount = 0
  /** Another node has told of members of a queue group. */
  onMembers: ((slot: Slot, node: string) => void) | undefined
  /** A node that did not answer has been heard. */
  onHeard: ((node: string) => void) | undefined

  /**
   * The queue groups of a kind whose pattern matches the key.
   * Cost: one look-up for a key that was seen lately; nothing while there are none.
   */
  match(kind: SlotKind, key: string): readonly Slot[] {
    if (this.byId.size === 0) return NO_SLOTS
    const routes = this.#router.match(key)
    if (routes.length === 0) return NO_SLOTS
    const found: Slot[] = []
    for (const route of routes) {
      for (const slot of this.#byRoute.get(route) ?? NO_SLOTS) if (slot.name.kind === kind) found.push(slot)
    }
    return found
  }

  /**
   * The queue group with this name; a new one if there is none.
   * @throws {WebMQError} `E_LISTEN_LIMIT` when there are {@link MAX_SLOTS}.
   */
  obtain(name: SlotName): Slot {
    const known = this.byId.get(slotIdOf(name))
    if (known !== undefined) return known
    if (this.byId.size >= MAX_SLOTS) throw refusalOf('E_LISTEN_LIMIT', { detail: `${MAX_SLOTS} queue groups` })
    const slot = new Slot(name, this.#router.add(name.pattern).group)
    this.byId.set(slot.id, slot)
    const others = this.#byRoute.get(slot.route)
    if (others === undefined) this.#byRoute.set(slot.route, [slot])
    else others.push(slot)
    return slot
  }

  /** Forgets a queue group that nobody is a member of; does nothing for another. */
  prune(slot: Slot): void {
    if (slot.members.length > 0 || slot.remote.size > 0 || !this.byId.delete(slot.id)) return
    this.#router.remove(slot.name.pattern)
    const others = (this.#byRoute.get(slot.route) ?? NO_SLOTS).filter((other) => other !== slot)
    if (others.length > 0) this.#byRoute.set(slot.route, others)
    else this.#byRoute.delete(slot.route)
  }

  *ids(): Iterable<string> {
    for (const { id, members } of this.byId.values()) if (members.length > 0) yield id
  }

  entryText(id: string): string | undefined {
    const slot = this.byId.get(id)
    return slot === undefined || slot.members.length === 0 ? undefined : changeText(slot.name, slot.members.length)
  }

  removalText(id: string): string {
    return changeText(slotNameOf(id), 0)
  }

  decode(item: unknown, node: string): SlotChange | undefined {
    const name = nameFrom(item)
    const count = Array.isArray(item) ? item[3] : undefined
    return name !== undefined && isCount(count) ? { id: slotIdOf(name), node, name, count } : undefined
  }

  apply({ node, name, id, count }: SlotChange): void {
    try {
      if (count === 0) this.remove(node, id)
      else {
        const slot = this.obtain(name)
        slot.remote.set(node, count)
        this.onMembers?.(slot, node)
      }
    } catch {
      // Too many: counted and shown.
      this.droppedCount++
    }
  }

  heard(node: string): void {
    this.onHeard?.(node)
  }

  *idsOf(node: string): Iterable<string> {
    for (const { id, remote } of this.byId.values()) if (remote.has(node)) yield id
  }

  remove(node: string, id: string): void {
    const slot = this.byId.get(id)
    if (slot?.remote.delete(node)) this.prune(slot)
  }

  /** Another node has no members any more. Cost: O(slots). */
  removeNode(node: string): void {
    for (const slot of [...this.byId.values()]) if (slot.remote.delete(node)) this.prune(slot)
  }
}

const NO_SLOTS: readonly Slot[] = []

function changeText(name: SlotName, count: number): string {
  return JSON.stringify([...nameItem(name), count])
}

function slotNameOf(id: string): SlotName {
  const [letter, group = '', ...pattern] = id.split(' ')
  return { kind: letter === 'l' ? 'listen' : 'respond', group, pattern: pattern.join(' ') }
}
