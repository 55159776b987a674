import { Router } from '../../../kernel/patterns/router.js'
import type { GroupId } from '../../../kernel/ports/transport.js'
import { FRAME } from './frames.js'
import type { Hello } from './handshake.js'
import type { Link } from './link.js'
import { Outbox } from './outbox.js'
import type { AckGroup } from './send-batch.js'

/** More patterns end the link: no real node has as many. */
const MAX_PATTERNS = 1_000_000
/** Checks of the oldest unacknowledged frame per timeout. */
export const LOOKS_PER_TIMEOUT = 4

interface Pending {
  readonly group: AckGroup
  sequence: number
  bytes: number
}

/**
 * Another node, as long as the streams to and from it last, over any number of links. It knows the
 * peer's patterns, the unacknowledged frames, and the number of received frames.
 */
export class Peer {
  readonly nodeId: string
  readonly listenPort: number
  readonly streamId: string
  readonly outbox = new Outbox()
  readonly #interest: PeerInterest<Peer>
  link: Link | undefined
  /** Runs while there is no link; then the peer is given up. */
  relinkTimer: NodeJS.Timeout | undefined
  /** Generation of the last link; see {@link Start.generation}. */
  generation = 0
  receivedSequence = 0
  /** Whether it has frames to send at the end of this turn. */
  isDirty = false
  #patterns = new Set<string>()
  /** The patterns of the peer are known: it is sent matching messages. */
  isReady = false
  /** The peer knows the patterns of this node. */
  isLive = false
  readonly #pending: Pending[] = []
  pendingBytes = 0
  #oldestGroup: AckGroup | undefined
  #looksAtOldest = 0

  constructor({ nodeId, listenPort }: Hello, streamId: string, interest: PeerInterest<Peer>) {
    this.nodeId = nodeId
    this.listenPort = listenPort
    this.streamId = streamId
    this.#interest = interest
  }

  /** Each node knows the other's patterns. */
  get isSettled(): boolean {
    return this.isReady && this.isLive
  }

  /**
   * Whether one frame was the oldest unacknowledged one for a whole timeout. Call it {@link LOOKS_PER_TIMEOUT} times
   * per timeout. It counts looks, not time: after a long pause of this node, acknowledgements may be waiting to be
   * read.
   */
  isOverdue(): boolean {
    const oldest = this.#pending[0]?.group
    const isSame = oldest !== undefined && oldest === this.#oldestGroup
    this.#oldestGroup = oldest
    this.#looksAtOldest = isSame ? this.#looksAtOldest + 1 : 0
    return this.#looksAtOldest >= LOOKS_PER_TIMEOUT
  }

  /** Sends the patterns of this node, before any message. */
  introduce(patterns: Iterable<string>): void {
    for (const pattern of patterns) this.outbox.add(FRAME.add, Buffer.from(pattern))
    this.outbox.add(FRAME.ready, new Uint8Array(0))
  }

  tell(pattern: string, isAdded: boolean): void {
    this.outbox.add(isAdded ? FRAME.add : FRAME.remove, Buffer.from(pattern))
  }

  /** The group waits until the peer has acknowledged everything that is in the outbox now. */
  expect(group: AckGroup, bytes: number): void {
    const last = this.#pending[this.#pending.length - 1]
    this.pendingBytes += bytes
    if (last?.group === group) {
      last.sequence = this.outbox.lastSequence
      last.bytes += bytes
      return
    }
    group.waitingCount++
    this.#pending.push({ group, sequence: this.outbox.lastSequence, bytes })
  }

  /** The peer acknowledges all frames up to this one. Returns `false` if it was never sent. */
  acked(sequence: number): boolean {
    if (!this.outbox.acked(sequence)) return false
    while ((this.#pending[0]?.sequence ?? Number.POSITIVE_INFINITY) <= sequence) this.#answer()
    return true
  }

  /** The peer wants messages of a pattern. Returns `false` if it has too many patterns. */
  add(pattern: string): boolean {
    if (this.#patterns.has(pattern)) return true
    if (this.#patterns.size >= MAX_PATTERNS) return false
    this.#patterns.add(pattern)
    if (this.isReady) this.#interest.add(pattern, this)
    return true
  }

  remove(pattern: string): void {
    if (this.#patterns.delete(pattern) && this.isReady) this.#interest.remove(pattern, this)
  }

  /**
   * The peer has sent all its patterns: from now on it gets matching messages. It is told whether it may have missed
   * some.
   */
  ready(mayHaveMissed: boolean): void {
    if (this.isReady) return
    this.isReady = true
    for (const pattern of this.#patterns) this.#interest.add(pattern, this)
    this.outbox.add(FRAME.live, Uint8Array.of(mayHaveMissed ? 1 : 0))
  }

  /** The streams end: nothing more is sent, and pending groups no longer wait for the peer. */
  end(): void {
    if (this.isReady) for (const pattern of this.#patterns) this.#interest.remove(pattern, this)
    this.#patterns = new Set()
    this.isReady = false
    while (this.#pending.length > 0) this.#answer()
  }

  #answer(): void {
    const pending = this.#pending.shift()
    if (pending === undefined) return
    this.pendingBytes -= pending.bytes
    pending.group.answered()
  }
}

/** Most cached sets of peers; one more clears the cache. */
const MAX_KNOWN_SETS = 4_096

/** Finds the peers that want a key. The router holds each pattern once for all peers that sent it. */
export class PeerInterest<Each extends Pick<Peer, 'nodeId'>> {
  readonly #router = new Router()
  readonly #members = new Map<GroupId, readonly Each[]>()
  /** Peers by the router's own array of groups. */
  #unions = new WeakMap<readonly GroupId[], readonly Each[]>()
  /** One immutable array per set of peers, so that sets can be compared by identity. */
  #sets = new Map<string, readonly Each[]>()
  readonly #nobody = this.#setOf([])

  get patternCount(): number {
    return this.#router.patternCount
  }

  add(pattern: string, peer: Each): void {
    const { group } = this.#router.add(pattern)
    this.#members.set(group, this.#setOf([...(this.#members.get(group) ?? []), peer]))
    this.#unions = new WeakMap()
  }

  /** The peer no longer wants messages of a pattern that was added. */
  remove(pattern: string, peer: Each): void {
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
  match(key: string): readonly Each[] {
    const groups = this.#router.match(key)
    const [only] = groups
    if (only === undefined) return this.#nobody
    if (groups.length === 1) return this.#members.get(only) ?? this.#nobody
    return this.#unions.get(groups) ?? this.#unite(groups)
  }

  #unite(groups: readonly GroupId[]): readonly Each[] {
    const union = new Set<Each>()
    for (const group of groups) for (const peer of this.#members.get(group) ?? []) union.add(peer)
    const peers = this.#setOf([...union])
    this.#unions.set(groups, peers)
    return peers
  }

  #setOf(peers: Each[]): readonly Each[] {
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
