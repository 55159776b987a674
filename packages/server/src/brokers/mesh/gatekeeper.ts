import { randomBytes } from 'node:crypto'
import { encodeFrame, FRAME, REFUSAL, REFUSAL_TEXTS, refusalOf } from './frames.js'
import type { Hello } from './hello.js'
import type { MeshLog } from './logger.js'
import { MAX_PEERS, type Peers } from './peers.js'
import { decodeStart, decodeStarted, encodeStart, encodeStarted, RELATION_BYTES, type Start } from './start-frames.js'
import type { Wire } from './wire.js'

/** What a {@link Gatekeeper} works with. */
export interface GatekeeperContext {
  /** This node's id. */
  readonly node: string
  readonly peers: Peers
  readonly log: MeshLog
  /** For which the other node may take to start a link, or to follow. */
  readonly timeoutMs: number
}

/**
 * Decides which of the authenticated connections between two nodes is their link.
 *
 * The node with the lower id decides, alone: it starts a link, the other one follows. It takes a connection that the other one has
 * dialled instead of the link that it has, for that one proves itself only while it has none; it drops one of its own. Numbers that
 * grow tell the follower which of two starts is the later one, in whatever order they arrive.
 */
export class Gatekeeper {
  readonly #context: GatekeeperContext
  #generation = 0
  /** What ends a connection that is on its way to be a link. */
  readonly #underWay = new Set<() => void>()
  /** Those that this node has started, at most one per node. */
  readonly #starting = new Map<string, () => void>()

  constructor(context: GatekeeperContext) {
    this.#context = context
  }

  /** Makes the connection the link to its node, or closes it. */
  admit(wire: Wire, hello: Hello, isDialled: boolean): void {
    const { node, peers } = this.#context
    const isLeader = node < hello.node
    if (isLeader && isDialled && (peers.isLinked(hello.node) || this.#starting.has(hello.node))) {
      wire.destroy()
      return
    }
    if (peers.get(hello.node) === undefined && peers.size + this.#underWay.size >= MAX_PEERS) {
      wire.write(encodeFrame(FRAME.refuse, Uint8Array.of(REFUSAL.busy)))
      wire.end()
      return
    }
    if (isLeader) this.#lead(wire, hello)
    else this.#follow(wire, hello)
  }

  /** Closes what is on its way. */
  stop(): void {
    for (const abandon of [...this.#underWay]) abandon()
  }

  #lead(wire: Wire, hello: Hello): void {
    const { peers } = this.#context
    this.#starting.get(hello.node)?.()
    const known = peers.get(hello.node)
    // Closed when the other node has followed: to it, a link that ends before is a link that is lost.
    const replaced = known === undefined ? undefined : peers.detach(known)
    const relation = known?.relation ?? randomBytes(RELATION_BYTES).toString('hex')
    const generation = ++this.#generation
    wire.write(
      encodeFrame(
        FRAME.start,
        encodeStart({ generation, relation, isResumed: known !== undefined, received: known?.receivedSequence ?? 0 }),
      ),
    )
    const abandon = this.#await(wire, replaced, FRAME.started, (body) => {
      const { isResumed, received } = decodeStarted(body)
      const current = peers.get(hello.node)
      if (isResumed && (current === undefined || current !== known)) {
        throw new Error('it goes on with streams that were given up')
      }
      const peer = isResumed && current !== undefined ? current : peers.create(hello, relation)
      if (!peers.attach(peer, wire, isResumed ? received : 0)) throw new Error('it has taken in what was not sent')
    })
    this.#starting.set(hello.node, abandon)
  }

  #follow(wire: Wire, hello: Hello): void {
    this.#await(wire, undefined, FRAME.start, (body) => this.#onStart(wire, hello, decodeStart(body)))
  }

  #onStart(wire: Wire, hello: Hello, { generation, relation, isResumed, received }: Start): void {
    const { peers } = this.#context
    const known = peers.get(hello.node)
    // A later start has come over another connection.
    if (known !== undefined && generation <= known.generation) {
      wire.destroy()
      return
    }
    if (known !== undefined) peers.detach(known)?.destroy()
    const goesOn = isResumed && known?.relation === relation
    const peer = goesOn && known !== undefined ? known : peers.create(hello, relation)
    peer.generation = generation
    wire.write(encodeFrame(FRAME.started, encodeStarted({ isResumed: goesOn, received: peer.receivedSequence })))
    if (!peers.attach(peer, wire, goesOn ? received : 0)) throw new Error('it has taken in what was not sent')
  }

  /**
   * Calls `next` with the body of the one frame that may come now. Returns what closes the connection instead.
   * @param replaced Closed when either has happened.
   */
  #await(wire: Wire, replaced: Wire | undefined, expected: number, next: (body: Buffer) => void): () => void {
    const { log, timeoutMs } = this.#context
    const timer = setTimeout(() => wire.fail(new Error(`no link within ${timeoutMs} ms`)), timeoutMs)
    const settle = () => {
      clearTimeout(timer)
      replaced?.destroy()
      this.#underWay.delete(abandon)
      for (const [node, other] of this.#starting) if (other === abandon) this.#starting.delete(node)
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
        log.debug({ address: wire.remote, err: cause }, 'mesh connection did not become a link')
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
