import type { Deadline, Deadlines } from '../deadlines.js'
import type { Members } from './members.js'
import type { NodeMessage } from './node-message.js'
import { Peer, type PeerContext } from './peer.js'

/** What {@link Peers} works with. */
export interface PeersContext extends Omit<PeerContext, 'members'> {
  readonly members: Pick<Members, 'entriesOf' | 'remove' | 'removeNode'>
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  /** A monotonic clock, in milliseconds; the clock of the deadlines. */
  readonly now: () => number
  /** Time for which a node is valid when no lease of it has arrived yet. */
  readonly validMs: number
  /** Interval of leases. A deadline that is late by more than this shows that this process was paused. */
  readonly leaseIntervalMs: number
}

/** Most nodes, so that forged names from the broker cannot fill the memory. */
const MAX_PEERS = 1_024
/** Longest accepted lease. */
const MAX_VALID_MS = 3_600_000

interface Leased {
  readonly peer: Peer
  /** Absent while leases are frozen. */
  expiry: Deadline | undefined
}

/**
 * The other nodes that take part, and their leases. When a lease expires, the members of that node are removed. No lease
 * expires while this node is cut off; afterwards every node has the time of one lease to renew.
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

  /** Messages of nodes above the limit. */
  get unknownCount(): number {
    return this.#unknownCount
  }

  /** Whether the copies of all known nodes are complete. */
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

  /** Asks again for copies that have not arrived. */
  retry(): void {
    for (const { peer } of this.#byNode.values()) peer.retry()
  }

  /** This node is cut off from the others. */
  freeze(): void {
    this.#isFrozen = true
    for (const leased of this.#byNode.values()) this.#clear(leased)
  }

  /** This node is connected again. */
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
    const { now, leaseIntervalMs, members, onComplete } = this.#context
    // The deadline is late: leases may have arrived that were not read yet, so no node expires now.
    if (now() - atMs > leaseIntervalMs) {
      this.#renew(leased, leaseIntervalMs)
      return
    }
    this.#byNode.delete(leased.peer.node)
    members.removeNode(leased.peer.node)
    onComplete()
  }

  #clear(leased: Leased): void {
    if (leased.expiry !== undefined) this.#context.deadlines.clear(leased.expiry)
    leased.expiry = undefined
  }
}
