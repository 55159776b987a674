import type { Deadline, Deadlines } from '../deadlines.js'
import type { NodeMessage } from './node-message.js'
import { Peer, type PeerContext } from './peer.js'
import type { Roster } from './roster.js'

/** What {@link Peers} work with. */
export interface PeersContext extends Omit<PeerContext, 'roster'> {
  readonly roster: Pick<Roster, 'entriesOf' | 'remove' | 'removeNode'>
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  /** A clock that never goes back, in milliseconds; that of the deadlines. */
  readonly now: () => number
  /** For which a lease is taken as good that is renewed without having been heard of. */
  readonly validMs: number
  /** Interval of leases: a deadline that is late by more shows that this process stood still. */
  readonly leaseIntervalMs: number
}

/** Nodes at once; whoever can publish at the broker cannot fill the memory with names. */
const MAX_PEERS = 1_024
/** Longest that a lease is taken as good, whatever it says. */
const MAX_VALID_MS = 3_600_000

interface Leased {
  readonly peer: Peer
  /** Absent while leases are frozen. */
  expiry: Deadline | undefined
}

/**
 * The other nodes that take part, and their leases: the members of one that is not heard of in time are gone. While this node cannot hear
 * anyone nobody's lease runs out, and afterwards everyone has the time of one lease to be heard of.
 */
export class Peers {
  readonly #context: PeersContext
  readonly #byNode = new Map<string, Leased>()
  #isFrozen = false
  #unknownCount = 0

  constructor(context: PeersContext) {
    this.#context = context
  }

  get size(): number {
    return this.#byNode.size
  }

  /** Messages of nodes beyond the most that there may be. */
  get unknownCount(): number {
    return this.#unknownCount
  }

  /** Whether everything is here that the known nodes hold. */
  get isComplete(): boolean {
    for (const { peer } of this.#byNode.values()) if (!peer.isComplete) return false
    return true
  }

  receive(message: Exclude<NodeMessage, { kind: 'want' }>): void {
    const leased = this.#find(message.node)
    if (leased === undefined) return
    const { peer } = leased
    if (message.kind === 'changes') peer.changes(message)
    else if (message.kind === 'part') peer.part(message)
    else {
      this.#renew(leased, Math.min(message.validMs, MAX_VALID_MS))
      peer.lease(message.version)
    }
  }

  /** Asks again for what was asked for and did not come. */
  retry(): void {
    for (const { peer } of this.#byNode.values()) peer.retry()
  }

  /** This node hears nobody. */
  freeze(): void {
    this.#isFrozen = true
    for (const leased of this.#byNode.values()) this.#clear(leased)
  }

  /** It hears again. */
  thaw(): void {
    this.#isFrozen = false
    for (const leased of this.#byNode.values()) {
      this.#renew(leased, this.#context.validMs)
      leased.peer.restart()
    }
  }

  #find(node: string): Leased | undefined {
    const known = this.#byNode.get(node)
    if (known !== undefined) return known
    if (this.#byNode.size >= MAX_PEERS) {
      this.#unknownCount++
      return undefined
    }
    const leased: Leased = { peer: new Peer(node, this.#context), expiry: undefined }
    this.#byNode.set(node, leased)
    this.#renew(leased, this.#context.validMs)
    return leased
  }

  #renew(leased: Leased, validMs: number): void {
    this.#clear(leased)
    if (this.#isFrozen) return
    const { deadlines, now } = this.#context
    const atMs = now() + validMs
    leased.expiry = deadlines.set(atMs, () => this.#expire(leased, atMs))
  }

  #expire(leased: Leased, atMs: number): void {
    const { now, leaseIntervalMs, roster, onComplete } = this.#context
    // Late: what has come meanwhile was not read yet, so nothing is known of anyone.
    if (now() - atMs > leaseIntervalMs) {
      this.#renew(leased, leaseIntervalMs)
      return
    }
    this.#byNode.delete(leased.peer.node)
    roster.removeNode(leased.peer.node)
    onComplete()
  }

  #clear(leased: Leased): void {
    if (leased.expiry !== undefined) this.#context.deadlines.clear(leased.expiry)
    leased.expiry = undefined
  }
}
