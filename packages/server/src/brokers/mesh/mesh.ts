import type { MeshAddress } from './dialer.js'
import { Dialers, type ResolveHost } from './dialers.js'
import { Gatekeeper } from './gatekeeper.js'
import { Listener } from './listener.js'
import { Peers, type PeersContext } from './peers.js'

/** What a {@link Mesh} is made of. */
export interface MeshOptions extends Omit<PeersContext, 'settled' | 'unlinked'> {
  /** Id of this life of the node. */
  readonly node: string
  readonly listen: MeshAddress
  readonly peers: readonly MeshAddress[]
  readonly namespace: string
  readonly secret: string
  readonly resolve: ResolveHost
  readonly resolveIntervalMs: number
  /** The bound of {@link Mesh.start}. */
  readonly startTimeoutMs: number
}

const HANDSHAKE_TIMEOUT_MS = 5_000
/** A start waits no longer for peers than this: one that is not there does not hold the others up. */
const MAX_START_MS = 2_000
/** Between looks at the links: four in an interval of heartbeats, but not more often than the first, nor more seldom than the second. */
const MIN_TICK_MS = 10
const MAX_TICK_MS = 250
/** For which peers may take to close their end of a link after a goodbye. */
const MAX_GOODBYE_MS = 1_000

/** One life of a node in a mesh: its listener, its dialers, its links. */
export class Mesh {
  readonly peers: Peers
  readonly #options: MeshOptions
  readonly #listener: Listener
  readonly #dialers: Dialers
  readonly #gatekeeper: Gatekeeper
  readonly #tickMs: number
  #timer: NodeJS.Timeout | undefined
  #tickedAtMs = 0
  #address: MeshAddress | undefined
  /** Told of every change that may be waited for. */
  readonly #waiting = new Set<() => void>()

  constructor(options: MeshOptions) {
    this.#options = options
    const { node, namespace, secret, heartbeatMs, timeoutMs, rules, log } = options
    const identity = { node, namespace, secret, heartbeatMs, rules }
    this.peers = new Peers({
      ...options,
      settled: () => this.#changed(),
      unlinked: ({ node }) => {
        this.#dialers.unlinked(node)
        this.#changed()
      },
    })
    const { peers } = this
    this.#gatekeeper = new Gatekeeper({ node: identity.node, peers, log, timeoutMs: HANDSHAKE_TIMEOUT_MS })
    const context = {
      identity,
      peers,
      log,
      handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      admit: this.#gatekeeper.admit.bind(this.#gatekeeper),
      tried: () => this.#changed(),
    }
    this.#listener = new Listener(context)
    const { resolve, resolveIntervalMs } = options
    this.#dialers = new Dialers({ ...context, peerAddresses: options.peers, resolve, resolveIntervalMs })
    this.#tickMs = Math.min(MAX_TICK_MS, Math.max(MIN_TICK_MS, Math.min(heartbeatMs, timeoutMs) / 4))
  }

  /** Where it listens. */
  get address(): MeshAddress | undefined {
    return this.#address
  }

  /**
   * Resolves when it listens and every peer was tried once, within a bound.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  async start(): Promise<void> {
    const { listen, log, startTimeoutMs } = this.#options
    this.#address = await this.#listener.start(listen)
    log.info({ ...this.#address }, 'mesh is listening')
    this.#tickedAtMs = performance.now()
    this.#timer = setInterval(() => this.#tick(), this.#tickMs)
    this.#dialers.start()
    await this.#until(() => this.#dialers.areTried, Math.min(startTimeoutMs, MAX_START_MS))
  }

  /** Says goodbye to all peers, and ends everything. */
  async stop(): Promise<void> {
    this.#dialers.stop()
    this.#listener.stop()
    this.#gatekeeper.stop()
    this.peers.leave(performance.now())
    await this.#until(() => [...this.peers.all()].every(({ link }) => link === undefined), MAX_GOODBYE_MS)
    clearInterval(this.#timer)
    this.peers.clear()
    this.#address = undefined
  }

  #tick(): void {
    const nowMs = performance.now()
    const wasHeldUp = nowMs - this.#tickedAtMs > 4 * this.#tickMs
    this.#tickedAtMs = nowMs
    this.peers.tick(nowMs, wasHeldUp)
  }

  /** Resolves when it is so, or the time is over. */
  #until(isSo: () => boolean, timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#waiting.delete(look)
        resolve()
      }
      const look = () => {
        if (isSo()) done()
      }
      const timer = setTimeout(done, timeoutMs)
      this.#waiting.add(look)
      look()
    })
  }

  #changed(): void {
    for (const look of this.#waiting) look()
  }
}
