import type { Deadline, Deadlines } from '../../kernel/base/deadlines.js'
import type { Member } from './member.js'
import { addressOf, type Entry, isNewer, type Members } from './members.js'

export interface Holder {
  /** Another connection or node has taken over or ended the member. */
  lost(key: string, id: string): void
}

/** A user, or an address of anonymous clients. */
interface Owner {
  readonly name: string
  memberCount: number
}

interface Held {
  entry: Entry
  readonly owner: Owner
  /** Absent while the member lingers. */
  holder: Holder | undefined
  linger: Deadline | undefined
}

export interface LocalMembersContext {
  /** This node. */
  readonly node: string
  readonly lingerMs: number
  /** Those of all nodes. */
  readonly members: Members
  /** The other nodes are told of a member. */
  readonly changed: (address: string, stamp?: number) => void
  readonly deadlines: Pick<Deadlines, 'now' | 'set' | 'clear'>
}

/** The members of this node's connections. Only this node decides about them; it tells the other nodes. */
export class LocalMembers {
  readonly #context: LocalMembersContext
  readonly #byAddress = new Map<string, Held>()
  readonly #owners = new Map<string, Owner>()
  /** Lamport clock: later than every stamp that this node has written or seen. */
  #clock = 0

  constructor(context: LocalMembersContext) {
    this.#context = context
  }

  get size(): number {
    return this.#byAddress.size
  }

  holds(key: string, id: string): boolean {
    return this.#byAddress.has(addressOf(key, id))
  }

  /** Members of a client, those that linger included. @param owner See {@link clientNameOf}. */
  countOf(owner: string): number {
    return this.#owners.get(owner)?.memberCount ?? 0
  }

  /**
   * Sets a member and takes it over from its previous holder. Writes a new stamp even when nothing changed, so that this
   * entry outranks those of other nodes. A member that is taken over counts as that of the client that entered it.
   */
  put(key: string, member: Member, owner: string, holder: Holder): void {
    const { node, members, changed } = this.#context
    const address = addressOf(key, member.id)
    const known = this.#byAddress.get(address)
    const entry: Entry = { key, member, stamp: ++this.#clock, node }
    if (known === undefined) {
      this.#byAddress.set(address, { entry, owner: this.#counted(owner), holder, linger: undefined })
    } else {
      if (known.holder !== holder) known.holder?.lost(key, member.id)
      this.#stopLingering(known)
      known.entry = entry
      known.holder = holder
    }
    members.set(entry)
    changed(address)
  }

  /** A member leaves on request: its entries on all nodes end. */
  leave(key: string, id: string): void {
    const stamp = ++this.#clock
    this.#end(key, id, stamp)
    this.#context.members.removeBefore(key, id, stamp)
  }

  /** The member's connection is lost; the member lingers, because the client may come back. */
  abandon(key: string, id: string): void {
    const { deadlines, lingerMs } = this.#context
    const held = this.#byAddress.get(addressOf(key, id))
    if (held === undefined) return
    held.holder = undefined
    this.#stopLingering(held)
    if (lingerMs === 0) this.#end(key, id, 0)
    else held.linger = deadlines.set(deadlines.now() + lingerMs, () => this.#end(key, id, 0))
  }

  /** Another node holds the member. If its entry is newer and ours is lingering, the client has come back there. */
  seen(other: Entry): void {
    this.#clock = Math.max(this.#clock, other.stamp)
    const { key, member } = other
    const held = this.#byAddress.get(addressOf(key, member.id))
    if (held !== undefined && held.holder === undefined && isNewer(other, held.entry)) this.#end(key, member.id, 0)
  }

  leftElsewhere(key: string, id: string, stamp: number): void {
    this.#clock = Math.max(this.#clock, stamp)
    const held = this.#byAddress.get(addressOf(key, id))
    if (held === undefined || held.entry.stamp >= stamp) return
    held.holder?.lost(key, id)
    this.#end(key, id, 0)
  }

  #end(key: string, id: string, stamp: number): void {
    const address = addressOf(key, id)
    const held = this.#byAddress.get(address)
    if (held === undefined) return
    this.#stopLingering(held)
    this.#byAddress.delete(address)
    if (--held.owner.memberCount === 0) this.#owners.delete(held.owner.name)
    const { node, members, changed } = this.#context
    members.remove(node, key, id)
    changed(address, stamp)
  }

  #counted(name: string): Owner {
    const owner = this.#owners.get(name) ?? { name, memberCount: 0 }
    owner.memberCount++
    this.#owners.set(owner.name, owner)
    return owner
  }

  #stopLingering(held: Held): void {
    if (held.linger !== undefined) this.#context.deadlines.clear(held.linger)
    held.linger = undefined
  }
}
