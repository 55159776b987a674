import type { Deadline, Deadlines } from '../base/deadlines.js'

/** Another node, as far as this one knows it. */
export interface Peer {
  /** Absent while this node is cut off. */
  expiry: Deadline | undefined
  /** It has told what it has. */
  hasReported: boolean
  /** It has other options, or is of another version. */
  isDifferent: boolean
}

/** Settings of {@link Peers}. */
export interface PeersContext {
  /** Name of this node. */
  readonly node: string
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  /** A monotonic clock, in milliseconds; the clock of the deadlines. */
  readonly now: () => number
  /** Time for which a node is valid when no lease of it has arrived yet. */
  readonly validMs: number
  /** Interval of leases. A deadline that is late by more than this shows that this process was paused. */
  readonly leaseIntervalMs: number
  /** No lease ends while this node is cut off from the others. */
  readonly isCutOff: () => boolean
  /** A node is gone. @param hasLeft It has said so, and did not crash. */
  readonly onGone: (node: string, hasLeft: boolean) => void
}

/** Most nodes, so that forged names from the broker cannot fill the memory. */
export const MAX_PEERS = 1_024
/** Longest accepted lease. */
const MAX_VALID_MS = 3_600_000

/** The other nodes and their leases. A node whose lease ends is gone. */
export class Peers {
  readonly #context: PeersContext
  readonly #byName = new Map<string, Peer>()

  constructor(context: PeersContext) {
    this.#context = context
  }

  get size(): number {
    return this.#byName.size
  }

  names(): string[] {
    return [...this.#byName.keys()]
  }

  all(): Iterable<Peer> {
    return this.#byName.values()
  }

  /** The peer of this name, new or known; `undefined` for this node itself, and when there are too many. */
  obtain(name: string): Peer | undefined {
    const known = this.#byName.get(name)
    if (known !== undefined || name === this.#context.node || this.#byName.size >= MAX_PEERS) return known
    const peer: Peer = { expiry: undefined, hasReported: false, isDifferent: false }
    this.#byName.set(name, peer)
    this.renew(name, peer)
    return peer
  }

  /** A lease of the node has arrived. */
  renew(name: string, peer: Peer, validMs = this.#context.validMs): void {
    const { deadlines, now, isCutOff } = this.#context
    if (peer.expiry !== undefined) deadlines.clear(peer.expiry)
    peer.expiry = undefined
    if (isCutOff()) return
    const atMs = now() + Math.min(validMs, MAX_VALID_MS)
    peer.expiry = deadlines.set(atMs, () => this.#expire(name, peer, atMs))
  }

  /** This node is cut off, or connected again: then every node has the time of a lease to renew. */
  renewAll(): void {
    for (const [name, peer] of this.#byName) this.renew(name, peer)
  }

  /** The node is gone; a no-op for one that is not known. */
  remove(name: string, hasLeft: boolean): void {
    const peer = this.#byName.get(name)
    if (peer === undefined) return
    if (peer.expiry !== undefined) this.#context.deadlines.clear(peer.expiry)
    this.#byName.delete(name)
    this.#context.onGone(name, hasLeft)
  }

  /** Removes nodes that were named by others, and have not reported. */
  removeSilent(): void {
    for (const [name, { hasReported }] of [...this.#byName]) if (!hasReported) this.remove(name, false)
  }

  #expire(name: string, peer: Peer, atMs: number): void {
    const { now, leaseIntervalMs } = this.#context
    // The deadline is late: leases may have arrived that were not read yet, so no node expires now.
    if (now() - atMs > leaseIntervalMs) this.renew(name, peer, leaseIntervalMs)
    else this.remove(name, false)
  }
}
