import { Router } from '../../patterns/router.js'
import type { GroupId } from '../../ports/transport.js'

interface Named {
  /** Different for every peer. */
  readonly nodeId: string
}

/** Most cached sets of peers; one more clears the cache. */
const MAX_KNOWN_SETS = 4_096

/** Finds the peers that want a key. The router holds each pattern once for all peers that sent it. */
export class PeerInterest<Peer extends Named> {
  readonly #router = new Router()
  readonly #members = new Map<GroupId, readonly Peer[]>()
  /** Peers by the router's own array of groups. */
  #unions = new WeakMap<readonly GroupId[], readonly Peer[]>()
  /** One immutable array per set of peers, so that sets can be compared by identity. */
  #sets = new Map<string, readonly Peer[]>()
  readonly #nobody = this.#setOf([])

  get patternCount(): number {
    return this.#router.patternCount
  }

  add(pattern: string, peer: Peer): void {
    const { group } = this.#router.add(pattern)
    this.#members.set(group, this.#setOf([...(this.#members.get(group) ?? []), peer]))
    this.#unions = new WeakMap()
  }

  /** The peer no longer wants messages of a pattern that was added. */
  remove(pattern: string, peer: Peer): void {
    // `add` returns the group but adds a reference, so there are two to remove.
    const { group } = this.#router.add(pattern)
    this.#router.remove(pattern)
    this.#router.remove(pattern)
    const rest = this.#members.get(group)?.filter((other) => other !== peer) ?? []
    if (rest.length > 0) this.#members.set(group, this.#setOf(rest))
    else this.#members.delete(group)
    this.#unions = new WeakMap()
  }

  /** Peers with at least one pattern that matches the key, each once. Equal sets are mostly the same array. */
  match(key: string): readonly Peer[] {
    const groups = this.#router.match(key)
    const [only] = groups
    if (only === undefined) return this.#nobody
    if (groups.length === 1) return this.#members.get(only) ?? this.#nobody
    return this.#unions.get(groups) ?? this.#unite(groups)
  }

  #unite(groups: readonly GroupId[]): readonly Peer[] {
    const union = new Set<Peer>()
    for (const group of groups) for (const peer of this.#members.get(group) ?? []) union.add(peer)
    const peers = this.#setOf([...union])
    this.#unions.set(groups, peers)
    return peers
  }

  #setOf(peers: Peer[]): readonly Peer[] {
    peers.sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1))
    const name = peers.map(({ nodeId }) => nodeId).join()
    const known = this.#sets.get(name)
    // A node that came back is another peer with the same id.
    if (known?.every((peer, index) => peer === peers[index]) === true) return known
    if (this.#sets.size >= MAX_KNOWN_SETS) this.#sets = new Map()
    this.#sets.set(name, peers)
    return peers
  }
}
