import type { Deadline, Deadlines } from '../../kernel/base/deadlines.js'
import type { Logger } from '../../kernel/base/logger.js'

export interface Peer {
  /** Absent while this node is cut off. */
  expiry: Deadline | undefined
  hasReported: boolean
  /** The last term that it has told. */
  term?: number
  /** It has other options, or is of another version. */
  isDifferent: boolean
  /** Its clock is not that of this node. */
  clock?: { readonly sinceMs: number; isSure: boolean; apartMs: number } | undefined
}

/** Share of the time to live after which a lease is renewed, so that two renewals may get lost. */
const LEASE_SHARE = 1 / 3
/** Share of the time to live for which a lease is valid. The rest covers the delay of messages. */
const VALID_SHARE = 5 / 6
/** Most nodes, so that forged names from the broker cannot fill the memory. */
export const MAX_PEERS = 1_024
/** Longest accepted lease. */
const MAX_VALID_MS = 3_600_000

/** A lease is under way for less than this: it waits for the broker for `brokerTimeoutMs` at most. */
const MIN_APART_MS = 30_000
/** Leases that are read at once, after this node stood still, are one witness. */
const SURE_MS = 1_000

/**
 * Compares the clock of another node with that of this one.
 * @param timeMs Of a lease: its clock when it was sent; anything else from a node of an older version.
 * @param nowMs A clock that never goes back.
 */
export function compareClock(peer: Peer, timeMs: unknown, nowMs: number): void {
  const apartMs = typeof timeMs === 'number' ? Math.abs(timeMs - Date.now()) : 0
  if (!(apartMs >= MIN_APART_MS)) peer.clock = undefined
  else {
    const { sinceMs = nowMs, isSure = false } = peer.clock ?? {}
    peer.clock = { sinceMs, isSure: isSure || nowMs - sinceMs >= SURE_MS, apartMs }
  }
}

export interface PeersContext {
  /** This node. */
  readonly node: string
  readonly ttlMs: number
  /** By a clock that stands while this process does: leases that arrive meanwhile are read late. */
  readonly deadlines: Deadlines
  readonly isCutOff: () => boolean
  /** @param hasLeft The node has said so, and did not crash. */
  readonly gone: (node: string, hasLeft: boolean) => void
}

/** The other nodes and their leases. A node whose lease ends is gone, unless this one is cut off from the others. */
export class Peers {
  /** Time for which a node is valid when no lease of it has arrived yet. */
  readonly validMs: number
  readonly leaseIntervalMs: number
  readonly #context: PeersContext
  readonly byName = new Map<string, Peer>()

  constructor(context: PeersContext) {
    const { ttlMs } = context
    this.#context = context
    this.validMs = Math.floor(ttlMs * VALID_SHARE)
    this.leaseIntervalMs = ttlMs * LEASE_SHARE
  }

  /** The peer of this name, new or known; `undefined` for this node itself, and when there are too many. */
  obtain(name: string): Peer | undefined {
    const known = this.byName.get(name)
    if (known !== undefined || name === this.#context.node || this.byName.size >= MAX_PEERS) return known
    const peer: Peer = { expiry: undefined, hasReported: false, isDifferent: false }
    this.byName.set(name, peer)
    this.renew(name, peer)
    return peer
  }

  renew(name: string, peer: Peer, validMs = this.validMs): void {
    if (peer.expiry !== undefined) this.#context.deadlines.clear(peer.expiry)
    peer.expiry = undefined
    if (this.#context.isCutOff()) return
    const { deadlines } = this.#context
    peer.expiry = deadlines.set(deadlines.now() + Math.min(validMs, MAX_VALID_MS), () => {
      peer.expiry = undefined
      if (!this.#context.isCutOff()) this.remove(name, false)
    })
  }

  heardTerm(name: string, term: number): void {
    const peer = this.byName.get(name)
    if (peer !== undefined) peer.term = Math.max(peer.term ?? 0, term)
  }

  /** This node is cut off, or connected again: then every node has the time of a lease to renew. */
  renewAll(): void {
    for (const [name, peer] of this.byName) this.renew(name, peer)
  }

  /** The node is gone; a no-op for one that is not known. */
  remove(name: string, hasLeft: boolean): void {
    const peer = this.byName.get(name)
    if (peer === undefined) return
    if (peer.expiry !== undefined) this.#context.deadlines.clear(peer.expiry)
    this.byName.delete(name)
    this.#context.gone(name, hasLeft)
  }

  /** Removes nodes that were named by others, and have not reported. */
  removeSilent(): void {
    for (const [name, { hasReported }] of [...this.byName]) if (!hasReported) this.remove(name, false)
  }
}

const DIFFERS =
  'another node has other options, or is of another version; one of another application needs a brokerNamespace of its own'

/** Logs once of each other node that it has other options, or is of another version. */
export class Differences {
  readonly #logger: Pick<Logger, 'warn'>
  readonly #logged = new Set<string>()

  constructor(logger: Pick<Logger, 'warn'>) {
    this.#logger = logger
  }

  tell(peer: string, fields: object): void {
    if (this.#logged.has(peer)) return
    // Nodes of another format are no peers, so nothing says when they are gone.
    if (this.#logged.size >= MAX_PEERS) this.#logged.clear()
    this.#logged.add(peer)
    this.#logger.warn({ peer, ...fields }, DIFFERS)
  }

  forget(peer: string): void {
    this.#logged.delete(peer)
  }
}
