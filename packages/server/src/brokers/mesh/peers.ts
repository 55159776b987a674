import { MIN_SILENT_INTERVALS } from '../remote/liveness.js'
import { FRAME_HEAD_BYTES } from './frames.js'
import type { Hello } from './handshake.js'
import { Link } from './link.js'
import type { MeshNode } from './node.js'
import type { MeshBrokerOptions } from './options.js'
import { LOOKS_PER_TIMEOUT, Peer, PeerInterest } from './peer.js'
import type { Wire } from './wire.js'

/** From this number of peers on, a node warns that a broker would serve better. */
const MANY_PEERS = 20
export const MAX_PEERS = 256
/** The largest payload that a server can be configured to take, with a key. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024 + 1_024

const DEFAULT_RELINK_MS = 1_000

/** No node gives up another one that stands still, and whose link is not cut, within less. */
export function patienceMs(options: MeshBrokerOptions): number {
  const { brokerTimeoutMs, brokerHeartbeatMs, relinkMs = DEFAULT_RELINK_MS } = options
  return Math.min(brokerTimeoutMs, MIN_SILENT_INTERVALS * brokerHeartbeatMs + relinkMs)
}

/** The nodes that this node has streams with. Gives up nodes that do not answer, or whose link does not come back. */
export class Peers {
  readonly interest = new PeerInterest<Peer>()
  readonly #node: MeshNode
  readonly byId = new Map<string, Peer>()
  /** Number of links that were lost without a goodbye. */
  lostCount = 0
  #isWarned = false
  #isLeaving = false
  #lookTimer: NodeJS.Timeout | undefined

  constructor(node: MeshNode) {
    this.#node = node
  }

  isLinked(nodeId: string): boolean {
    return this.byId.get(nodeId)?.link !== undefined
  }

  start(): void {
    this.#lookTimer = setInterval(() => this.#giveUpOverdue(), this.#node.options.brokerTimeoutMs / LOOKS_PER_TIMEOUT)
  }

  /** Begins streams with a node; earlier streams with it end. */
  create(hello: Hello, streamId: string): Peer {
    const { nodeId, rulesHash } = hello
    const { broker, identity, options } = this.#node
    const { logger } = options
    const old = this.byId.get(nodeId)
    if (old !== undefined) this.#end(old)
    const peer = new Peer(hello, streamId, this.interest)
    this.byId.set(nodeId, peer)
    if (rulesHash !== identity.rulesHash)
      logger.warn({ peer: nodeId }, 'mesh peer has other history rules: its log has other messages')
    peer.introduce(broker.wantedPatterns())
    if (this.byId.size >= MANY_PEERS && !this.#isWarned) {
      this.#isWarned = true
      const text = 'this mesh is large: every node is linked to every other; a real broker is the way'
      logger.warn({ nodes: MANY_PEERS + 1 }, text)
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
    wire.reader.maxFrameBytes = FRAME_HEAD_BYTES + MAX_FRAME_BYTES
    peer.link = new Link(wire, peer, this.#node)
    this.#node.options.logger.info({ peer: peer.nodeId, address: wire.remote }, 'mesh link is up')
    peer.link.flush()
    return true
  }

  /** Says goodbye to all peers. Links that end from now on are not lost. */
  leave(): void {
    this.#isLeaving = true
    for (const { link, isReady } of this.byId.values()) link?.leave(!isReady && this.#node.broker.hasPublished)
  }

  /** Ends all streams and links at once. */
  clear(): void {
    clearInterval(this.#lookTimer)
    for (const peer of [...this.byId.values()]) this.#end(peer)
  }

  ready(peer: Peer): void {
    peer.ready(this.#node.broker.hasPublished)
    if (peer.isSettled) this.#node.settled(peer)
  }

  /** The peer knows the patterns of this node. @param mayHaveMissed It accepted messages before that. */
  live(peer: Peer, mayHaveMissed: boolean): void {
    peer.isLive = true
    if (mayHaveMissed) this.#node.broker.gap()
    if (peer.isSettled) this.#node.settled(peer)
  }

  /** The peer leaves. @param mayHaveMissed It accepted messages without knowing the patterns of this node. */
  goodbye(peer: Peer, mayHaveMissed: boolean): void {
    this.#node.options.logger.info({ peer: peer.nodeId }, 'mesh peer leaves')
    peer.link?.wire.end()
    this.#end(peer)
    if (mayHaveMissed) this.#node.broker.gap()
    this.#node.unlinked(peer)
  }

  lost(peer: Peer, cause: Error): void {
    this.#unlink(peer)
    if (!this.#isLeaving) {
      this.lostCount++
      this.#node.options.logger.warn({ peer: peer.nodeId, err: cause }, 'mesh link is lost')
    }
    this.#node.unlinked(peer)
  }

  /**
   * Nobody listens any more where the node listened: its process has ended, and its link will not come back. Nothing waits
   * `relinkMs` for it then.
   */
  ended(nodeId: string, port: number): void {
    const peer = this.byId.get(nodeId)
    // At another port a proxy refused the connection, and the node may be alive.
    if (peer !== undefined && peer.link === undefined && peer.listenPort === port) this.#giveUp(peer)
  }

  #giveUpOverdue(): void {
    const { brokerTimeoutMs } = this.#node.options
    for (const peer of [...this.byId.values()]) {
      if (!peer.isOverdue()) continue
      peer.link?.wire.fail(new Error(`no acknowledgement for ${brokerTimeoutMs} ms`))
      this.#giveUp(peer)
    }
  }

  #giveUp(peer: Peer): void {
    this.#node.options.logger.warn({ peer: peer.nodeId }, 'mesh peer is given up until it is linked again')
    this.#end(peer)
    this.#node.unlinked(peer)
    this.#node.broker.gap()
  }

  #unlink(peer: Peer): void {
    peer.link?.stop()
    peer.link = undefined
    clearTimeout(peer.relinkTimer)
    peer.relinkTimer = setTimeout(() => this.#giveUp(peer), this.#node.options.relinkMs ?? DEFAULT_RELINK_MS)
  }

  #end(peer: Peer): void {
    this.byId.delete(peer.nodeId)
    clearTimeout(peer.relinkTimer)
    peer.link?.stop()
    peer.link?.wire.destroy()
    peer.link = undefined
    peer.end()
  }
}
