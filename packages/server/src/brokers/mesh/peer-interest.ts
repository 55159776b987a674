import { Router } from '../../patterns/router.js'
import type { GroupId } from '../../ports/transport.js'

/** What is asked of a peer here. */
interface Named {
  /** Different for every peer. */
  readonly nodeId: string
}

/** Sets of peers that are kept; one more begins anew, which costs nothing but time. */
const MAX_KNOWN_SETS = 4_096

/** Finds the peers that listen to a key: one pattern of the router stands for all peers that have told it. */
export class PeerInterest<Peer extends Named> {
  readonly #router = new Router()
  /** Who has told the pattern of a group. */
  readonly #members = new Map<GroupId, readonly Peer[]>()
  /** Who has told any of several patterns, by the router's own array of their groups. */
  #unions = new WeakMap<readonly GroupId[], readonly Peer[]>()
  /** One array per set of peers, never changed, so that comparing arrays is comparing sets. */
  #sets = new Map<string, readonly Peer[]>()
  readonly #nobody = this.#setOf([])

  /** Patterns that are told by anyone. */
  get patternCount(): number {
    return this.#router.patternCount
  }

  /** The peer listens with a pattern that it has not told before. */
  add(pattern: string, peer: Peer): void {
    const { group } = this.#router.add(pattern)
    this.#members.set(group, this.#setOf([...(this.#members.get(group) ?? []), peer]))
    this.#unions = new WeakMap()
  }

  /** The peer no longer listens with a pattern that it has told. */
  remove(pattern: string, peer: Peer): void {
    // To add is to ask for the group; that reference goes back with the one that is removed.
    const { group } = this.#router.add(pattern)
    this.#router.remove(pattern)
    this.#router.remove(pattern)
    const rest = this.#members.get(group)?.filter((other) => other !== peer) ?? []
    if (rest.length > 0) this.#members.set(group, this.#setOf(rest))
    else this.#members.delete(group)
    this.#unions = new WeakMap()
  }

  /** Peers that listen with at least one pattern that matches the key, each once. The same peers are the same array, mostly. */
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
    // A node that has come back is another peer of the same name.
    if (known?.every((peer, index) => peer === peers[index]) === true) return known
    if (this.#sets.size >= MAX_KNOWN_SETS) this.#sets = new Map()
    this.#sets.set(name, peers)
    return peers
  }
}
