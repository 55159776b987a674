import { FRAME_HEAD_BYTES } from './frames.js'
import type { Hello } from './hello.js'
import { Link, type LinkEvents, type PeerMessage } from './link.js'
import { LOOKS_PER_TIMEOUT, Peer } from './peer.js'
import { PeerInterest } from './peer-interest.js'
import type { Wire } from './wire.js'

/** From this number of peers on, a node warns that a broker would serve better. */
const MANY_PEERS = 20
/** Most links of a node. */
export const MAX_PEERS = 256
/** The largest payload that a server can be configured to take, with a key. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024 + 1_024

/** Logger of a mesh; the server's logger fits. */
export interface MeshLogger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** What {@link Peers} work with. */
export interface PeersContext {
  /** A link that is silent for two intervals is lost. */
  readonly heartbeatMs: number
  /** Time for a peer to acknowledge a frame. */
  readonly timeoutMs: number
  /** Time for a lost link to come back before its peer is given up. */
  readonly relinkMs: number
  readonly logger: MeshLogger
  /** See {@link Hello.rulesHash}. */
  readonly rulesHash: string
  /** Patterns of the messages that this node wants. */
  wantedPatterns(): Iterable<string>
  /** Whether this node has accepted a message since its start. */
  hasPublished(): boolean
  message: LinkEvents['message']
  malformed: LinkEvents['malformed']
  /** Messages of a peer may be missing. */
  gap(): void
  /** There are frames to send to a peer. */
  dirty(peer: Peer): void
  /** This node and the peer know each other's patterns. */
  settled(peer: Peer): void
  /** The peer has lost its link. */
  unlinked(peer: Peer): void
}

/** The nodes that this node has streams with. Gives up nodes that do not answer, or whose link does not come back. */
export class Peers implements LinkEvents {
  readonly interest = new PeerInterest<Peer>()
  readonly #context: PeersContext
  readonly #peers = new Map<string, Peer>()
  #lostCount = 0
  #isWarned = false
  #isLeaving = false
  #lookTimer: NodeJS.Timeout | undefined

  constructor(context: PeersContext) {
    this.#context = context
  }

  /** Number of links that were lost without a goodbye. */
  get lostCount(): number {
    return this.#lostCount
  }

  get size(): number {
    return this.#peers.size
  }

  all(): IterableIterator<Peer> {
    return this.#peers.values()
  }

  get(nodeId: string): Peer | undefined {
    return this.#peers.get(nodeId)
  }

  isLinked(nodeId: string): boolean {
    return this.#peers.get(nodeId)?.link !== undefined
  }

  /** Starts to check for peers that do not answer. */
  start(): void {
    this.#lookTimer = setInterval(() => this.#giveUpOverdue(), this.#context.timeoutMs / LOOKS_PER_TIMEOUT)
  }

  /** Begins streams with a node; earlier streams with it end. */
  create(hello: Hello, streamId: string): Peer {
    const { nodeId, rulesHash } = hello
    const { logger, wantedPatterns } = this.#context
    const old = this.#peers.get(nodeId)
    if (old !== undefined) this.#end(old)
    const peer = new Peer(hello, streamId, this.interest)
    this.#peers.set(nodeId, peer)
    if (rulesHash !== this.#context.rulesHash)
      logger.warn({ peer: nodeId }, 'mesh peer has other history rules: its log has other messages')
    peer.introduce(wantedPatterns())
    if (this.#peers.size >= MANY_PEERS && !this.#isWarned) {
      this.#isWarned = true
      logger.warn(
        { nodes: MANY_PEERS + 1 },
        'this mesh is large: every node is linked to every other; a real broker is the way',
      )
    }
    return peer
  }

  /** Detaches the link, which another one replaces. Returns its connection for the caller to close. */
  detach(peer: Peer): Wire | undefined {
    const { link } = peer
    if (link === undefined) return undefined
    link.wire.mute()
    this.#unlink(peer)
    return link.wire
  }

  /**
   * Continues the streams over this connection, after the frames that the peer has received. Returns `false` if it
   * claims too many.
   */
  attach(peer: Peer, wire: Wire, received: number): boolean {
    if (!peer.acked(received)) return false
    clearTimeout(peer.relinkTimer)
    peer.outbox.rewind(received)
    wire.maxFrameBytes = FRAME_HEAD_BYTES + MAX_FRAME_BYTES
    peer.link = new Link(wire, peer, this.#context.heartbeatMs, this)
    this.#context.logger.info({ peer: peer.nodeId, address: wire.remote }, 'mesh link is up')
    peer.link.flush()
    return true
  }

  /** Says goodbye to all peers. Links that end from now on are not lost. */
  leave(): void {
    this.#isLeaving = true
    for (const { link, isReady } of this.#peers.values()) link?.leave(!isReady && this.#context.hasPublished())
  }

  /** Ends all streams and links at once. */
  clear(): void {
    clearInterval(this.#lookTimer)
    for (const peer of [...this.#peers.values()]) this.#end(peer)
  }

  message(message: PeerMessage, messageId: string | undefined): void {
    this.#context.message(message, messageId)
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

  goodbye(peer: Peer, mayHaveMissed: boolean): void {
    this.#context.logger.info({ peer: peer.nodeId }, 'mesh peer leaves')
    peer.link?.wire.end()
    this.#end(peer)
    if (mayHaveMissed) this.#context.gap()
    this.#context.unlinked(peer)
  }

  lost(peer: Peer, cause: Error): void {
    this.#unlink(peer)
    if (!this.#isLeaving) {
      this.#lostCount++
      this.#context.logger.warn({ peer: peer.nodeId, err: cause }, 'mesh link is lost')
    }
    this.#context.unlinked(peer)
  }

  /**
   * Nobody listens any more where the node listened: its process has ended, and its link will not come back. Nothing waits
   * `relinkMs` for it then.
   */
  ended(nodeId: string, port: number): void {
    const peer = this.#peers.get(nodeId)
    // At another port a proxy refused the connection, and the node may be alive.
    if (peer !== undefined && peer.link === undefined && peer.listenPort === port) this.#giveUp(peer)
  }

  #giveUpOverdue(): void {
    const { timeoutMs } = this.#context
    for (const peer of [...this.#peers.values()]) {
      if (!peer.isOverdue()) continue
      peer.link?.wire.fail(new Error(`no acknowledgement for ${timeoutMs} ms`))
      this.#giveUp(peer)
    }
  }

  #giveUp(peer: Peer): void {
    this.#context.logger.warn({ peer: peer.nodeId }, 'mesh peer is given up until it is linked again')
    this.#end(peer)
    this.#context.unlinked(peer)
    this.#context.gap()
  }

  #unlink(peer: Peer): void {
    peer.link?.stop()
    peer.link = undefined
    clearTimeout(peer.relinkTimer)
    peer.relinkTimer = setTimeout(() => this.#giveUp(peer), this.#context.relinkMs)
  }

  #end(peer: Peer): void {
    this.#peers.delete(peer.nodeId)
    clearTimeout(peer.relinkTimer)
    peer.link?.stop()
    peer.link?.wire.destroy()
    peer.link = undefined
    peer.end()
  }
}
