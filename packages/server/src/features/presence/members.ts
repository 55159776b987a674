import type { Member } from './member.js'

export interface Entry {
  readonly key: string
  readonly member: Member
  /** Lamport time of the write: later than every stamp that the node had seen. */
  readonly stamp: number
  readonly node: string
}

/** Called with every visible change of a key. `before` is absent for a new member, `after` for one that left. */
export type OnMemberChange = (key: string, id: string, before: Member | undefined, after: Member | undefined) => void

/** The members of one key. While a member moves between nodes, both hold an entry of it; the newest one counts. */
interface KeyMembers {
  /** Entries by member id; newest first. */
  readonly entries: Map<string, readonly Entry[]>
  byteLength: number
  /** The members as a JSON array in UTF-8, until one changes. */
  encoded: Buffer | undefined
}

const NOBODY = Buffer.from('[]')

/**
 * All members that this node knows, by key and by the node that holds them. All nodes agree on which of two entries of
 * a member counts, regardless of the order of arrival.
 *
 * Cost: a few lookups per change; `removeNode` is O(members of the node).
 */
export class Members {
  readonly #onChange: OnMemberChange
  readonly #byKey = new Map<string, KeyMembers>()
  readonly #byNode = new Map<string, Map<string, Entry>>()
  /** Entries of all nodes. A member that two nodes hold counts twice. */
  entryCount = 0
  byteLength = 0

  constructor(onChange: OnMemberChange) {
    this.#onChange = onChange
  }

  sizeOf(key: string): number {
    return this.#byKey.get(key)?.entries.size ?? 0
  }

  /** Bytes of the members of a key, in the form that clients get. */
  bytesOf(key: string): number {
    return this.#byKey.get(key)?.byteLength ?? 0
  }

  find(key: string, id: string): Member | undefined {
    return this.#byKey.get(key)?.entries.get(id)?.[0]?.member
  }

  /**
   * The members of a key, in no particular order: a JSON array in UTF-8, in the form that clients get. Kept until the next
   * change of the key. Read-only.
   */
  encodedOf(key: string): Buffer {
    const known = this.#byKey.get(key)
    if (known === undefined) return NOBODY
    known.encoded ??= Buffer.from(
      `[${Array.from(known.entries.values(), ([first]) => (first as Entry).member.json).join()}]`,
    )
    return known.encoded
  }

  /** The entries of one node, by {@link addressOf}. A live view. */
  entriesOf(node: string): ReadonlyMap<string, Entry> {
    return this.#byNode.get(node) ?? NO_ENTRIES
  }

  set(entry: Entry): void {
    const { key, member, node } = entry
    const address = addressOf(key, member.id)
    const ofNode = this.#byNode.get(node) ?? new Map<string, Entry>()
    const known = ofNode.get(address)
    if (known === undefined) this.entryCount++
    this.byteLength += member.byteLength - (known?.member.byteLength ?? 0)
    ofNode.set(address, entry)
    this.#byNode.set(node, ofNode)
    this.#replace(key, member.id, node, entry)
  }

  /** Removes a node's entry of a member; a no-op when there is none. */
  remove(node: string, key: string, id: string): void {
    const ofNode = this.#byNode.get(node)
    const address = addressOf(key, id)
    const known = ofNode?.get(address)
    if (ofNode === undefined || known === undefined) return
    ofNode.delete(address)
    this.entryCount--
    this.byteLength -= known.member.byteLength
    if (ofNode.size === 0) this.#byNode.delete(node)
    this.#replace(key, id, node, undefined)
  }

  removeBefore(key: string, id: string, stamp: number): void {
    const known = this.#byKey.get(key)?.entries.get(id) ?? []
    for (const entry of known) if (entry.stamp < stamp) this.remove(entry.node, key, id)
  }

  removeNode(node: string): void {
    for (const { key, member } of [...this.entriesOf(node).values()]) this.remove(node, key, member.id)
  }

  #replace(key: string, id: string, node: string, entry: Entry | undefined): void {
    const members = this.#byKey.get(key) ?? newKey()
    const known = members.entries.get(id) ?? []
    const next = known.filter((other) => other.node !== node)
    if (entry !== undefined) {
      next.push(entry)
      next.sort((one, other) => (isNewer(one, other) ? -1 : 1))
    }
    const before = known[0]?.member
    const after = next[0]?.member
    if (after === undefined) members.entries.delete(id)
    else members.entries.set(id, next)
    members.byteLength += (after?.byteLength ?? 0) - (before?.byteLength ?? 0)
    if (members.entries.size === 0) this.#byKey.delete(key)
    else this.#byKey.set(key, members)
    members.encoded = undefined
    if (before?.json !== after?.json) this.#onChange(key, id, before, after)
  }
}

function newKey(): KeyMembers {
  return { entries: new Map(), byteLength: 0, encoded: undefined }
}

const NO_ENTRIES: ReadonlyMap<string, Entry> = new Map()

/** Names a member of a key. Keys and ids hold no space. */
export function addressOf(key: string, id: string): string {
  return `${key} ${id}`
}

export function partsOf(address: string): { readonly key: string; readonly id: string } {
  const space = address.indexOf(' ')
  return { key: address.slice(0, space), id: address.slice(space + 1) }
}

/** Whether an entry outranks another entry of the same member. Node names break ties. */
export function isNewer(one: Entry, other: Entry): boolean {
  return one.stamp > other.stamp || (one.stamp === other.stamp && one.node > other.node)
}
