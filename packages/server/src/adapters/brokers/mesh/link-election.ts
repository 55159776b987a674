import { randomBytes } from 'node:crypto'
import {
  decodeStart,
  decodeStarted,
  encodeFrame,
  encodeStart,
  encodeStarted,
  FRAME,
  REFUSAL,
  REFUSAL_TEXTS,
  refusalOf,
  STREAM_ID_BYTES,
  type Start,
} from './frames.js'
import { HANDSHAKE_TIMEOUT_MS, type Hello } from './handshake.js'
import type { MeshBrokerOptions } from './options.js'
import { MAX_PEERS, type Peers } from './peers.js'
import type { Wire } from './wire.js'

/**
 * Decides which of the authenticated connections between two nodes is their link.
 *
 * The node with the lower id is the leader: it starts a link, and the other node, the follower, accepts it. While the
 * leader has a link, it drops connections that it dialled itself. It accepts connections that the follower dialled: a
 * follower authenticates only while it has no link, so the old link is dead at its end. Each start carries a
 * generation, so the follower knows which of two starts is later, whatever their order of arrival.
 */
export class LinkElection {
  readonly #nodeId: string
  readonly #peers: Peers
  readonly #logger: MeshBrokerOptions['logger']
  #generation = 0
  /** One function per connection that may become a link: ends it. */
  readonly #underWay = new Set<() => void>()
  /** The same for connections that this node has started, at most one per node. */
  readonly #starting = new Map<string, () => void>()

  constructor(nodeId: string, peers: Peers, logger: MeshBrokerOptions['logger']) {
    this.#nodeId = nodeId
    this.#peers = peers
    this.#logger = logger
  }

  /** Makes the connection the link to its node, or closes it. */
  admit(wire: Wire, hello: Hello, isDialled: boolean): void {
    const peers = this.#peers
    const isLeader = this.#nodeId < hello.nodeId
    if (isLeader && isDialled && (peers.isLinked(hello.nodeId) || this.#starting.has(hello.nodeId))) {
      wire.destroy()
      return
    }
    if (peers.byId.get(hello.nodeId) === undefined && peers.byId.size + this.#underWay.size >= MAX_PEERS) {
      wire.write(encodeFrame(FRAME.refuse, Uint8Array.of(REFUSAL.busy)))
      wire.end()
      return
    }
    if (isLeader) this.#lead(wire, hello)
    else this.#follow(wire, hello)
  }

  stop(): void {
    for (const abandon of [...this.#underWay]) abandon()
  }

  #lead(wire: Wire, hello: Hello): void {
    const peers = this.#peers
    this.#starting.get(hello.nodeId)?.()
    const known = peers.byId.get(hello.nodeId)
    // Closed after the follower has accepted: it would take an earlier close for a lost link.
    const replaced = known === undefined ? undefined : peers.detach(known)
    const streamId = known?.streamId ?? randomBytes(STREAM_ID_BYTES).toString('hex')
    const generation = ++this.#generation
    wire.write(
      encodeFrame(
        FRAME.start,
        encodeStart({ generation, streamId, isResumed: known !== undefined, received: known?.receivedSequence ?? 0 }),
      ),
    )
    const abandon = this.#await(wire, replaced, FRAME.started, (body) => {
      const { isResumed, received } = decodeStarted(body)
      const current = peers.byId.get(hello.nodeId)
      if (isResumed && (current === undefined || current !== known)) {
        throw new Error('it goes on with streams that were given up')
      }
      const peer = isResumed && current !== undefined ? current : peers.create(hello, streamId)
      if (!peers.attach(peer, wire, isResumed ? received : 0)) throw new Error('it has taken in what was not sent')
    })
    this.#starting.set(hello.nodeId, abandon)
  }

  #follow(wire: Wire, hello: Hello): void {
    this.#await(wire, undefined, FRAME.start, (body) => this.#onStart(wire, hello, decodeStart(body)))
  }

  #onStart(wire: Wire, hello: Hello, { generation, streamId, isResumed, received }: Start): void {
    const peers = this.#peers
    const known = peers.byId.get(hello.nodeId)
    // A later start has come over another connection.
    if (known !== undefined && generation <= known.generation) {
      wire.destroy()
      return
    }
    if (known !== undefined) peers.detach(known)?.destroy()
    const goesOn = isResumed && known?.streamId === streamId
    const peer = goesOn && known !== undefined ? known : peers.create(hello, streamId)
    peer.generation = generation
    wire.write(encodeFrame(FRAME.started, encodeStarted({ isResumed: goesOn, received: peer.receivedSequence })))
    if (!peers.attach(peer, wire, goesOn ? received : 0)) throw new Error('it has taken in what was not sent')
  }

  /**
   * Waits for one frame of the expected type, then calls `next` with its body. Returns a function that closes the
   * connection instead.
   * @param replaced Closed in either case.
   */
  #await(wire: Wire, replaced: Wire | undefined, expected: number, next: (body: Buffer) => void): () => void {
    const tooLate = new Error(`no link within ${HANDSHAKE_TIMEOUT_MS} ms`)
    const timer = setTimeout(() => wire.fail(tooLate), HANDSHAKE_TIMEOUT_MS)
    const settle = () => {
      clearTimeout(timer)
      replaced?.destroy()
      this.#underWay.delete(abandon)
      for (const [nodeId, other] of this.#starting) if (other === abandon) this.#starting.delete(nodeId)
    }
    const abandon = () => {
      settle()
      wire.destroy()
    }
    this.#underWay.add(abandon)
    wire.handler = {
      frame: (type, bytes, start, end) => {
        if (type !== expected) return wire.fail(new Error(whyNot(type, bytes[start])))
        settle()
        next(bytes.subarray(start, end))
      },
      closed: (cause) => {
        settle()
        this.#logger.debug({ address: wire.remote, err: cause }, 'mesh connection did not become a link')
      },
    }
    return abandon
  }
}

function whyNot(type: number, reason = 0): string {
  if (type !== FRAME.refuse) return `it sends a frame of type ${type} before the link is started`
  const refusal = refusalOf(reason)
  return `it refuses this node: ${refusal === undefined ? 'no reason' : REFUSAL_TEXTS[refusal]}`
}
