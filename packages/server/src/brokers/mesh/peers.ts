import { FRAME_HEAD_BYTES } from './frames.js'
import type { Hello } from './hello.js'
import type { MeshHistory } from './history.js'
import { Link, type LinkEvents } from './link.js'
import type { MeshLog } from './logger.js'
import type { MarkedMessage } from './message-frame.js'
import { Peer } from './peer.js'
import { PeerInterest } from './peer-interest.js'
import type { Wire } from './wire.js'

/** For so long a lost link may come back, and the streams go on as if nothing had been; then the peer is given up. */
export const GRACE_MS = 1_000
/** A node with so many peers says that a real broker serves it better. */
const MANY_PEERS = 20
/** Links at most: a full mesh of so many nodes is not what this is for. */
export const MAX_PEERS = 256
/** The largest payload that any server can be set to take, with a key. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024 + 1_024

/** What the peers of a node need to know of it. */
export interface PeersContext {
  readonly heartbeatMs: number
  /** For which a peer may leave a frame without an acknowledgement. */
  readonly timeoutMs: number
  readonly log: MeshLog
  /** See {@link Hello.rules}. */
  readonly rules: string
  readonly history: MeshHistory | undefined
  /** What this node listens to. */
  localPatterns(): Iterable<string>
  /** Whether this node has accepted a message since its start. */
  hasPublished(): boolean
  message: LinkEvents['message']
  marked: LinkEvents['marked']
  malformed: LinkEvents['malformed']
  /** Messages of a peer may be missing. */
  gap(): void
  /** There is something to send to a peer. */
  dirty(peer: Peer): void
  /** Both nodes know what the other one listens to. */
  settled(peer: Peer): void
  /** The peer has no link any more. */
  unlinked(peer: Peer): void
}

/** The nodes that this node has streams to, and what becomes of them when their links are lost. */
export class Peers implements LinkEvents {
  readonly interest = new PeerInterest<Peer>()
  readonly #context: PeersContext
  readonly #peers = new Map<string, Peer>()
  #lostCount = 0
  #isWarned = false
  #isLeaving = false

  constructor(context: PeersContext) {
    this.#context = context
  }

  /** Links that were lost without a goodbye. */
  get lostCount(): number {
    return this.#lostCount
  }

  get size(): number {
    return this.#peers.size
  }

  all(): IterableIterator<Peer> {
    return this.#peers.values()
  }

  get(node: string): Peer | undefined {
    return this.#peers.get(node)
  }

  isLinked(node: string): boolean {
    return this.#peers.get(node)?.link !== undefined
  }

  /** Begins streams with a node; those with the same node that there were are at an end. */
  create({ node, heartbeatMs, rules }: Hello, relation: string): Peer {
    const old = this.#peers.get(node)
    if (old !== undefined) this.#end(old, false)
    const peer = new Peer(node, relation, heartbeatMs, this.interest)
    this.#peers.set(node, peer)
    const isAlike = rules === this.#context.rules
    if (isAlike) this.#context.history?.begin(peer)
    else {
      this.#context.history?.beginOther(peer)
      this.#context.log.warn({ peer: node }, 'mesh peer has other history rules: its messages are not logged here')
    }
    peer.introduce(this.#context.localPatterns())
    if (this.#peers.size >= MANY_PEERS && !this.#isWarned) {
      this.#isWarned = true
      this.#context.log.warn(
        { nodes: MANY_PEERS + 1 },
        'this mesh is large: every node is linked to every other; a real broker is the way',
      )
    }
    return peer
  }

  /** Takes the link away: it is replaced by another one. What has come over it so far counts. Returns its connection, to be closed. */
  detach(peer: Peer): Wire | undefined {
    const wire = peer.link?.wire
    if (wire === undefined) return undefined
    wire.mute()
    peer.link = undefined
    peer.lostAtMs = performance.now()
    return wire
  }

  /** The streams go on over this connection, after what the peer has taken in. Returns whether it can be. */
  attach(peer: Peer, wire: Wire, received: number): boolean {
    if (!peer.acked(received)) return false
    peer.outbox.rewind(received)
    const nowMs = performance.now()
    wire.maxFrameBytes = FRAME_HEAD_BYTES + MAX_FRAME_BYTES
    peer.link = new Link(wire, peer, nowMs, this)
    this.#context.log.info({ peer: peer.node, address: wire.remote }, 'mesh link is up')
    peer.link.flush(nowMs)
    return true
  }

  /** Sends heartbeats; finds silent links, peers that do not answer, and those that do not come back. */
  tick(nowMs: number, wasHeldUp: boolean): void {
    const { heartbeatMs, timeoutMs } = this.#context
    let isGap = false
    for (const peer of [...this.#peers.values()]) {
      const silentMs = peer.link?.tick(nowMs, heartbeatMs) ?? 0
      const maxSilentMs = 2 * Math.max(heartbeatMs, peer.heartbeatMs)
      const pendingMs = nowMs - (peer.pendingSinceMs ?? nowMs)
      // What an event loop that was held up has not read yet is no silence of the peer.
      if (silentMs > maxSilentMs && !wasHeldUp) peer.link?.wire.fail(new Error(`silent for ${Math.round(silentMs)} ms`))
      if (pendingMs > timeoutMs && !wasHeldUp) {
        peer.link?.wire.fail(new Error(`no acknowledgement for ${Math.round(pendingMs)} ms`))
      } else if (peer.link !== undefined || nowMs - peer.lostAtMs < GRACE_MS) continue
      this.#context.log.warn({ peer: peer.node }, 'mesh peer is given up until it is linked again')
      this.#end(peer, false)
      this.#context.unlinked(peer)
      isGap = true
    }
    if (isGap) this.#context.gap()
    this.#context.history?.tick(nowMs)
  }

  /** Says goodbye to all; from then on a link may end. */
  leave(nowMs: number): void {
    this.#isLeaving = true
    for (const { link } of this.#peers.values()) link?.leave(nowMs)
  }

  /** Ends all streams and links at once. */
  clear(): void {
    for (const peer of [...this.#peers.values()]) this.#end(peer, true)
    this.#context.history?.stop()
  }

  message(key: string, payload: Uint8Array, isBinary: boolean): void {
    this.#context.message(key, payload, isBinary)
  }

  marked(peer: Peer, message: MarkedMessage, key: string, payload: Uint8Array): void {
    this.#context.marked(peer, message, key, payload)
  }

  log(peer: Peer, type: number, body: Buffer): void {
    this.#context.history?.frame(peer, type, body)
    if (peer.isSettled) this.#context.settled(peer)
  }

  acked(peer: Peer): void {
    this.#context.history?.feed(peer)
    if (peer.isSettled && peer.history !== undefined) this.#context.settled(peer)
  }

  malformed(): void {
    this.#context.malformed()
  }

  dirty(peer: Peer): void {
    this.#context.dirty(peer)
  }

  ready(peer: Peer): void {
    peer.ready(this.#context.hasPublished())
    if (peer.isSettled) this.#context.settled(peer)
  }

  live(peer: Peer, mayHaveMissed: boolean): void {
    peer.live()
    if (mayHaveMissed) this.#context.gap()
    if (peer.isSettled) this.#context.settled(peer)
  }

  goodbye(peer: Peer): void {
    this.#context.log.info({ peer: peer.node }, 'mesh peer leaves')
    peer.link?.wire.end()
    this.#end(peer, true)
    this.#context.unlinked(peer)
  }

  lost(peer: Peer, cause: Error): void {
    peer.link = undefined
    peer.lostAtMs = performance.now()
    if (!this.#isLeaving) {
      this.#lostCount++
      this.#context.log.warn({ peer: peer.node, err: cause }, 'mesh link is lost')
    }
    this.#context.unlinked(peer)
  }

  #end(peer: Peer, isLeaving: boolean): void {
    this.#peers.delete(peer.node)
    peer.link?.wire.destroy()
    peer.link = undefined
    peer.end()
    this.#context.history?.end(peer, isLeaving)
  }
}
