import { MIN_SILENT_INTERVALS } from '../remote/liveness.js'
import { FRAME_HEAD_BYTES } from './frames.js'
import type { Hello } from './handshake.js'
import { Link, type LinkOptions, type LinkReports, type MessageSink } from './link.js'
import type { MeshBrokerOptions } from './options.js'
import { LOOKS_PER_TIMEOUT, Peer, PeerInterest } from './peer.js'
import type { Wire } from './wire.js'

/** From this number of peers on, a node warns that a broker would serve better. */
const MANY_PEERS = 20
export const MAX_PEERS = 256
/** The largest payload that a server can be configured to take, with a key. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024 + 1_024

const DEFAULT_RELINK_MS = 1_000
/** The process notes this often, within the time that it must not stand still, that it runs. */
const NOTES_PER_PATIENCE = 8

/** What this node has for its peers, and takes from them. */
export interface MeshSink extends MessageSink {
  wantedPatterns(): Iterable<string>
  /** Whether this node has published what clients may listen to: messages between nodes are nobody's gap. */
  readonly hasPublished: boolean
  /** Messages of a peer may be missing. */
  gap(): void
}

export interface PeersOptions extends MeshBrokerOptions, LinkOptions {
  readonly rulesHash: string
  readonly sink: MeshSink
  /** This node and the peer know each other's patterns. */
  settled(nodeId: string): void
  unlinked(nodeId: string): void
  /** Whether this node dials the address of the node, and so learns when it ends. */
  isDialled(nodeId: string): boolean
}

/** The nodes that this node has streams with. Gives up nodes that do not answer, or whose link does not come back. */
export class Peers implements LinkReports {
  readonly interest = new PeerInterest<Peer>()
  readonly #options: PeersOptions
  readonly byId = new Map<string, Peer>()
  /**
   * Peers that were given up and may be alive, with the ports they listen at. If one ends before it is linked again, only it
   * had what it accepted meanwhile. At most {@link MAX_PEERS}.
   */
  readonly #apart = new Map<string, number>()
  /** Number of links that were lost without a goodbye. */
  lostCount = 0
  #isWarned = false
  #isLeaving = false
  #lookTimer: NodeJS.Timeout | undefined
  /** No peer gives this node up within less, while it stands still and its link is not cut. */
  readonly #patienceMs: number
  #noteTimer: NodeJS.Timeout | undefined
  /** When the process is known to have run. */
  #noteMs = 0

  constructor(options: PeersOptions) {
    this.#options = options
    const { brokerTimeoutMs, brokerHeartbeatMs, relinkMs = DEFAULT_RELINK_MS } = options
    this.#patienceMs = Math.min(brokerTimeoutMs, MIN_SILENT_INTERVALS * brokerHeartbeatMs + relinkMs)
  }

  isLinked(nodeId: string): boolean {
    return this.byId.get(nodeId)?.link !== undefined
  }

  start(): void {
    this.#lookTimer = setInterval(() => this.#giveUpOverdue(), this.#options.brokerTimeoutMs / LOOKS_PER_TIMEOUT)
    this.#noteMs = performance.now()
    this.#noteTimer = setInterval(() => this.noteRunning(), this.#patienceMs / NOTES_PER_PATIENCE)
  }

  /**
   * When this process has stood still for so long that its peers may have given it up, what it reads next may come after
   * messages that it was never sent.
   */
  noteRunning(): void {
    const nowMs = performance.now()
    const hasStoodStill = this.#noteTimer !== undefined && nowMs - this.#noteMs > this.#patienceMs
    this.#noteMs = nowMs
    if (hasStoodStill) this.#options.sink.gap()
  }

  /** Begins streams with a node; earlier streams with it end. */
  create(hello: Hello, streamId: string): Peer {
    const { nodeId, rulesHash, listenPort } = hello
    const { logger } = this.#options
    const old = this.byId.get(nodeId)
    if (old !== undefined) this.#end(old)
    else if (!this.#apart.delete(nodeId)) this.#mayHaveReplaced(listenPort)
    const peer = new Peer(hello, streamId, this.interest)
    this.byId.set(nodeId, peer)
    if (rulesHash !== this.#options.rulesHash)
      logger.warn({ peer: nodeId }, 'mesh peer has other history rules: its log has other messages')
    peer.introduce(this.#options.sink.wantedPatterns())
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
    peer.link = new Link(wire, peer, this, this.#options)
    this.#options.logger.info({ peer: peer.nodeId, address: wire.remote }, 'mesh link is up')
    peer.link.flush()
    return true
  }

  /** Says goodbye to all peers. Links that end from now on are not lost. */
  leave(): void {
    this.#isLeaving = true
    clearInterval(this.#noteTimer)
    this.#noteTimer = undefined
    for (const { link, isReady } of this.byId.values()) link?.leave(!isReady && this.#options.sink.hasPublished)
  }

  /** Ends all streams and links at once. */
  clear(): void {
    clearInterval(this.#lookTimer)
    for (const peer of [...this.byId.values()]) this.#end(peer)
  }

  ready(peer: Peer): void {
    peer.ready(this.#options.sink.hasPublished)
    if (peer.isSettled) this.#options.settled(peer.nodeId)
  }

  live(peer: Peer, mayHaveMissed: boolean): void {
    peer.isLive = true
    if (mayHaveMissed) this.#options.sink.gap()
    if (peer.isSettled) this.#options.settled(peer.nodeId)
  }

  goodbye(peer: Peer, mayHaveMissed: boolean): void {
    this.#options.logger.info({ peer: peer.nodeId }, 'mesh peer leaves')
    peer.link?.wire.end()
    this.#end(peer)
    if (mayHaveMissed) this.#options.sink.gap()
    this.#options.unlinked(peer.nodeId)
  }

  lost(peer: Peer, cause: Error): void {
    this.#unlink(peer)
    if (!this.#isLeaving) {
      this.lostCount++
      this.#options.logger.warn({ peer: peer.nodeId, err: cause }, 'mesh link is lost')
    }
    this.#options.unlinked(peer.nodeId)
  }

  /**
   * Another node is at the address of this one, or nobody listens there any more: its process has ended, and its link will not
   * come back. Nothing waits `relinkMs` for it then.
   * @param port The one that refused: if the node listens at another one, a proxy did, and the node may be alive.
   */
  ended(nodeId: string, port?: number): void {
    const peer = this.byId.get(nodeId)
    const isItsOwn = (listenPort: number | undefined) => port === undefined || port === listenPort
    if (peer !== undefined && peer.link === undefined && isItsOwn(peer.listenPort)) {
      this.#giveUp(peer)
      this.#apart.delete(nodeId)
    } else if (this.#apart.has(nodeId) && isItsOwn(this.#apart.get(nodeId))) {
      this.#apart.delete(nodeId)
      this.#mayHaveEnded([nodeId])
    }
  }

  /** No name leads to the node any more. It may be alive, so that it stays apart. */
  unlisted(nodeId: string): void {
    if (this.#apart.has(nodeId)) this.#mayHaveEnded([nodeId])
  }

  /**
   * A new node may be in the place of those apart that listened at its port. Behind a proxy nothing else tells. One that is
   * dialled may as well be alive, and accept more: its dialer tells when it ends.
   */
  #mayHaveReplaced(listenPort: number): void {
    const nodeIds = [...this.#apart.keys()].filter((id) => this.#apart.get(id) === listenPort)
    for (const nodeId of nodeIds) if (!this.#options.isDialled(nodeId)) this.#apart.delete(nodeId)
    this.#mayHaveEnded(nodeIds)
  }

  /** These were given up before: the gap of that time came before what they accepted by themselves. */
  #mayHaveEnded(nodeIds: readonly string[]): void {
    if (nodeIds.length === 0) return
    this.#options.logger.warn({ peers: nodeIds }, 'mesh peers that were given up may have ended')
    this.#options.sink.gap()
  }

  #giveUpOverdue(): void {
    const { brokerTimeoutMs } = this.#options
    for (const peer of [...this.byId.values()]) {
      if (peer.isOverdue()) this.giveUp(peer, `no acknowledgement for ${brokerTimeoutMs} ms`)
    }
  }

  /** Ends the link and the streams with a node that takes in too little. */
  giveUp(peer: Peer, reason: string): void {
    peer.link?.wire.fail(new Error(reason))
    this.#giveUp(peer)
  }

  #giveUp(peer: Peer): void {
    this.#options.logger.warn({ peer: peer.nodeId }, 'mesh peer is given up until it is linked again')
    this.#end(peer)
    const [oldest] = this.#apart.keys()
    if (this.#apart.size >= MAX_PEERS && oldest !== undefined) this.ended(oldest)
    this.#apart.set(peer.nodeId, peer.listenPort)
    this.#options.unlinked(peer.nodeId)
    this.#options.sink.gap()
  }

  #unlink(peer: Peer): void {
    peer.link?.stop()
    peer.link = undefined
    clearTimeout(peer.relinkTimer)
    peer.relinkTimer = setTimeout(() => this.#giveUp(peer), this.#options.relinkMs ?? DEFAULT_RELINK_MS)
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
