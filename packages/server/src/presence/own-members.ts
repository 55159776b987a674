import type { Deadline, Deadlines } from '../deadlines.js'
import type { Announcer } from './announcer.js'
import type { Member } from './member.js'
import { addressOf, type Entry, isNewer, type Roster } from './roster.js'

/** Who holds a member: a connection, which is told when somebody else ends it. */
export interface Holder {
  /** The member at this key is no longer held. */
  lost(key: string, id: string): void
}

/** What {@link OwnMembers} work with. */
export interface OwnMembersContext {
  readonly node: string
  readonly roster: Pick<Roster, 'set' | 'remove' | 'removeBefore'>
  readonly announcer: Pick<Announcer, 'changed'>
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  readonly now: () => number
  /** For which a member stays whose connection was lost. */
  readonly lingerMs: number
}

interface Held {
  entry: Entry
  /** Absent while it lingers. */
  holder: Holder | undefined
  linger: Deadline | undefined
}

/** The members that this node holds for its connections: it alone decides about them, and tells the others. */
export class OwnMembers {
  readonly #context: OwnMembersContext
  readonly #byAddress = new Map<string, Held>()
  /** Lamport time: later than everything that was written or seen here. */
  #clock = 0

  constructor(context: OwnMembersContext) {
    this.#context = context
  }

  get size(): number {
    return this.#byAddress.size
  }

  /**
   * Puts a member in the place of what it was before, and takes it over from whoever held it. Always as something new, also when
   * nothing changed: what another node holds of it counts less from now on.
   */
  put(key: string, member: Member, holder: Holder): void {
    const { node, roster } = this.#context
    const address = addressOf(key, member.id)
    const known = this.#byAddress.get(address)
    const entry: Entry = { key, member, stamp: ++this.#clock, node }
    if (known === undefined) this.#byAddress.set(address, { entry, holder, linger: undefined })
    else {
      if (known.holder !== holder) known.holder?.lost(key, member.id)
      this.#stay(known)
      known.entry = entry
      known.holder = holder
    }
    roster.set(entry)
    this.#context.announcer.changed(key, member.id, 0)
  }

  /** A member leaves because it wants to: wherever else it is still held, it ends too. */
  leave(key: string, id: string): void {
    const stamp = ++this.#clock
    this.#end(key, id, stamp)
    this.#context.roster.removeBefore(key, id, stamp)
  }

  /** The connection of a member is lost; it may come back within the time to linger. */
  abandon(key: string, id: string): void {
    const { deadlines, now, lingerMs } = this.#context
    const held = this.#byAddress.get(addressOf(key, id))
    if (held === undefined) return
    held.holder = undefined
    this.#stay(held)
    if (lingerMs === 0) this.#end(key, id, 0)
    else held.linger = deadlines.set(now() + lingerMs, () => this.#end(key, id, 0))
  }

  /** Another node holds a member. When it is newer, and ours was only waiting for it to come back, it did. */
  seen(other: Entry): void {
    this.#clock = Math.max(this.#clock, other.stamp)
    const { key, member } = other
    const held = this.#byAddress.get(addressOf(key, member.id))
    if (held !== undefined && held.holder === undefined && isNewer(other, held.entry)) this.#end(key, member.id, 0)
  }

  /** A member has left by another node. */
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
    this.#stay(held)
    this.#byAddress.delete(address)
    this.#context.roster.remove(this.#context.node, key, id)
    this.#context.announcer.changed(key, id, stamp)
  }

  #stay(held: Held): void {
    if (held.linger !== undefined) this.#context.deadlines.clear(held.linger)
    held.linger = undefined
  }
}
