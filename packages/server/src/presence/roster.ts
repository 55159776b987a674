import type { Member } from './member.js'

/** A member as one node holds it. */
export interface Entry {
  readonly key: string
  readonly member: Member
  /** Lamport time of the node when it wrote this: later than everything that the node had seen. */
  readonly stamp: number
  readonly node: string
}

/** Called with every change of what is seen of a key: `before` or `after` is absent when the member was not, or is no longer, there. */
export type OnMemberChange = (key: string, id: string, before: Member | undefined, after: Member | undefined) => void

/** The members of one key. A member that moves from node to node is held by two of them for a while: the newest counts. */
interface KeyMembers {
  /** By id; newest first. */
  readonly places: Map<string, readonly Entry[]>
  byteLength: number
}

const NOBODY: readonly Member[] = []

/**
 * Everyone who is present at any key, as far as this node knows, by key and by the node that holds them. Which of two entries of one
 * member counts is the same on all nodes, in whatever order they came.
 *
 * Cost: a few look-ups per change; `removeNode` O(members of the node).
 */
export class Roster {
  readonly #onChange: OnMemberChange
  readonly #byKey = new Map<string, KeyMembers>()
  readonly #byNode = new Map<string, Map<string, Entry>>()
  #entryCount = 0

  constructor(onChange: OnMemberChange) {
    this.#onChange = onChange
  }

  /** Entries of all nodes: a member that two nodes hold counts twice. */
  get entryCount(): number {
    return this.#entryCount
  }

  /** Keys at which somebody is present. */
  get keyCount(): number {
    return this.#byKey.size
  }

  /** Members of a key. */
  sizeOf(key: string): number {
    return this.#byKey.get(key)?.places.size ?? 0
  }

  /** Bytes of the members of a key, as clients get them. */
  bytesOf(key: string): number {
    return this.#byKey.get(key)?.byteLength ?? 0
  }

  find(key: string, id: string): Member | undefined {
    return this.#byKey.get(key)?.places.get(id)?.[0]?.member
  }

  /** Who is present at a key, in no order. */
  members(key: string): readonly Member[] {
    const places = this.#byKey.get(key)?.places.values()
    return places === undefined ? NOBODY : Array.from(places, ([first]) => (first as Entry).member)
  }

  /** What one node holds, by {@link addressOf}. Live: it changes with the roster. */
  entriesOf(node: string): ReadonlyMap<string, Entry> {
    return this.#byNode.get(node) ?? NO_ENTRIES
  }

  /** Puts an entry in the place of the one that its node had of the same member. */
  set(entry: Entry): void {
    const { key, member, node } = entry
    const address = addressOf(key, member.id)
    const ofNode = this.#byNode.get(node) ?? new Map<string, Entry>()
    if (!ofNode.has(address)) this.#entryCount++
    ofNode.set(address, entry)
    this.#byNode.set(node, ofNode)
    this.#replace(key, member.id, node, entry)
  }

  /** Takes out what a node holds of a member; nothing happens when there is nothing. */
  remove(node: string, key: string, id: string): void {
    const ofNode = this.#byNode.get(node)
    if (ofNode?.delete(addressOf(key, id)) !== true) return
    this.#entryCount--
    if (ofNode.size === 0) this.#byNode.delete(node)
    this.#replace(key, id, node, undefined)
  }

  /** Takes out what any node had of a member before `stamp`. */
  removeBefore(key: string, id: string, stamp: number): void {
    const place = this.#byKey.get(key)?.places.get(id) ?? []
    for (const entry of place) if (entry.stamp < stamp) this.remove(entry.node, key, id)
  }

  /** Takes out everything that a node holds. */
  removeNode(node: string): void {
    for (const { key, member } of [...this.entriesOf(node).values()]) this.remove(node, key, member.id)
  }

  #replace(key: string, id: string, node: string, entry: Entry | undefined): void {
    const members = this.#byKey.get(key) ?? { places: new Map<string, readonly Entry[]>(), byteLength: 0 }
    const place = members.places.get(id) ?? []
    const next = place.filter((other) => other.node !== node)
    if (entry !== undefined) {
      next.push(entry)
      next.sort((one, other) => (isNewer(one, other) ? -1 : 1))
    }
    const before = place[0]?.member
    const after = next[0]?.member
    if (after === undefined) members.places.delete(id)
    else members.places.set(id, next)
    members.byteLength += (after?.byteLength ?? 0) - (before?.byteLength ?? 0)
    if (members.places.size === 0) this.#byKey.delete(key)
    else this.#byKey.set(key, members)
    if (before?.json !== after?.json) this.#onChange(key, id, before, after)
  }
}

const NO_ENTRIES: ReadonlyMap<string, Entry> = new Map()

/** Names a member of a key: neither holds a space. */
export function addressOf(key: string, id: string): string {
  return `${key} ${id}`
}

/** Whether an entry of a member counts more than another of it. Nodes decide when both were written without knowing of each other. */
export function isNewer(one: Entry, other: Entry): boolean {
  return one.stamp > other.stamp || (one.stamp === other.stamp && one.node > other.node)
}
