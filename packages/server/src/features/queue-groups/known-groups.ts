import { refusalOf } from 'webmq-client/protocol'
import { Router } from '../../kernel/patterns/router.js'
import type { GroupId } from '../../kernel/ports/transport.js'
import { WRITERS } from '../../kernel/publishing/requests.js'
import { isCount, type TableChange, type TableEntries } from '../nodes/index.js'
import { type GroupKind, type GroupMember, type GroupName, groupIdOf } from './group-message.js'
import type { Candidate } from './pick-node.js'
import { nameFrom, nameItem } from './task-message.js'

/** A queue group that has members, here or on other nodes. */
export class QueueGroup {
  readonly name: GroupName
  readonly id: string
  /** Names it in this process, also after it was without members for a short time. */
  readonly number: number
  /** Of several groups of responders, the first by their ranks gets a request. */
  readonly rank: string
  /** Number of its pattern in the table of patterns. */
  readonly route: GroupId
  readonly members: GroupMember[] = []
  readonly remote = new Map<string, number>()
  #next = 0

  constructor(name: GroupName, number: number, route: GroupId) {
    this.name = name
    this.id = groupIdOf(name)
    this.number = number
    this.rank = rankOf(name, this.id)
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
export const MAX_GROUPS = 65_536
/** Numbers of groups without members that are kept; then all of them are forgotten. */
const MAX_FORMER = 1_024

export interface GroupChange extends TableChange {
  readonly node: string
  readonly name: GroupName
  /** Its members; 0: none any more. */
  readonly count: number
}

/**
 * The queue groups that this node knows: those of its own members, and those that other nodes have told. Between nodes, an
 * entry of a queue group is the number of members that a node has of it.
 */
export class KnownGroups implements TableEntries<GroupChange> {
  readonly #router = new Router()
  readonly byId = new Map<string, QueueGroup>()
  readonly #byRoute = new Map<GroupId, QueueGroup[]>()
  /** Numbers of queue groups that have lost their last member. */
  readonly #former = new Map<string, number>()
  #lastNumber = 0
  /** Queue groups of other nodes above the limit. */
  droppedCount = 0
  /** Another node has told of members of a queue group. */
  onMembers: ((group: QueueGroup, node: string) => void) | undefined
  /** A node that did not answer has been heard. */
  onHeard: ((node: string) => void) | undefined
  /** All queue groups of another node are known. */
  onCopied: ((node: string) => void) | undefined

  /**
   * The queue groups of a kind whose pattern matches the key.
   * Cost: one look-up for a key that was seen lately; nothing while there are none.
   */
  match(kind: GroupKind, key: string): readonly QueueGroup[] {
    if (this.byId.size === 0) return NO_GROUPS
    const routes = this.#router.match(key)
    if (routes.length === 0) return NO_GROUPS
    const found: QueueGroup[] = []
    for (const route of routes) {
      for (const group of this.#byRoute.get(route) ?? NO_GROUPS) if (group.name.kind === kind) found.push(group)
    }
    return found
  }

  /**
   * The queue group with this name; a new one if there is none.
   * @throws {WebMQError} `E_LISTEN_LIMIT` when there are {@link MAX_GROUPS}.
   */
  obtain(name: GroupName): QueueGroup {
    const id = groupIdOf(name)
    const known = this.byId.get(id)
    if (known !== undefined) return known
    if (this.byId.size >= MAX_GROUPS) throw refusalOf('E_LISTEN_LIMIT', { detail: `${MAX_GROUPS} queue groups` })
    const number = this.#former.get(id) ?? ++this.#lastNumber
    this.#former.delete(id)
    const group = new QueueGroup(name, number, this.#router.add(name.pattern).group)
    this.byId.set(group.id, group)
    const others = this.#byRoute.get(group.route)
    if (others === undefined) this.#byRoute.set(group.route, [group])
    else others.push(group)
    return group
  }

  /** Forgets a queue group that nobody is a member of; does nothing for another. */
  prune(group: QueueGroup): void {
    if (group.members.length > 0 || group.remote.size > 0 || !this.byId.delete(group.id)) return
    if (this.#former.size >= MAX_FORMER) this.#former.clear()
    this.#former.set(group.id, group.number)
    this.#router.remove(group.name.pattern)
    const others = (this.#byRoute.get(group.route) ?? NO_GROUPS).filter((other) => other !== group)
    if (others.length > 0) this.#byRoute.set(group.route, others)
    else this.#byRoute.delete(group.route)
  }

  *ids(): Iterable<string> {
    for (const { id, members } of this.byId.values()) if (members.length > 0) yield id
  }

  entryText(id: string): string | undefined {
    const group = this.byId.get(id)
    return group === undefined || group.members.length === 0 ? undefined : changeText(group.name, group.members.length)
  }

  removalText(id: string): string {
    return changeText(groupNameOf(id), 0)
  }

  decode(item: unknown, node: string): GroupChange | undefined {
    const name = nameFrom(item)
    const count = Array.isArray(item) ? item[3] : undefined
    return name !== undefined && isCount(count) ? { id: groupIdOf(name), node, name, count } : undefined
  }

  apply({ node, name, id, count }: GroupChange): void {
    try {
      if (count === 0) this.remove(node, id)
      else {
        const group = this.obtain(name)
        group.remote.set(node, count)
        this.onMembers?.(group, node)
      }
    } catch {
      // Too many: counted and shown.
      this.droppedCount++
    }
  }

  copied(node: string): void {
    this.onCopied?.(node)
  }

  heard(node: string): void {
    this.onHeard?.(node)
  }

  *idsOf(node: string): Iterable<string> {
    for (const { id, remote } of this.byId.values()) if (remote.has(node)) yield id
  }

  remove(node: string, id: string): void {
    const group = this.byId.get(id)
    if (group?.remote.delete(node)) this.prune(group)
  }

  /** Another node has no members any more. Cost: O(groups). */
  removeNode(node: string): void {
    for (const group of [...this.byId.values()]) if (group.remote.delete(node)) this.prune(group)
  }
}

const NO_GROUPS: readonly QueueGroup[] = []

/** The pattern with the fewest wildcards comes first, then the writer of a stream [P-18.7], then the first by name. */
function rankOf({ kind, group, pattern }: GroupName, id: string): string {
  if (kind === 'listen') return ''
  const words = pattern.split('.')
  const hashes = words.filter((word) => word === '#').length
  const stars = words.filter((word) => word === '*').length
  const isWriter = group === WRITERS && hashes + stars === 0
  return `${String(hashes).padStart(4, '0')} ${String(stars).padStart(4, '0')} ${isWriter ? 0 : 1} ${id}`
}

function changeText(name: GroupName, count: number): string {
  return JSON.stringify([...nameItem(name), count])
}

function groupNameOf(id: string): GroupName {
  const [letter, group = '', ...pattern] = id.split(' ')
  return { kind: letter === 'l' ? 'listen' : 'respond', group, pattern: pattern.join(' ') }
}
