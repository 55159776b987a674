import { deferred } from '../../base/deferred.js'
import { within } from '../../base/within.js'
import type { MeshAddress } from './dialer.js'
import { Dialers, type ResolveHost } from './dialers.js'
import { LinkElection } from './link-election.js'
import { Listener } from './listener.js'
import { Peers, type PeersContext } from './peers.js'

/** Options of a {@link MeshNode}. */
export interface MeshNodeOptions extends Omit<PeersContext, 'settled' | 'unlinked'> {
  /** Different for every start of every node. */
  readonly nodeId: string
  readonly listen: MeshAddress
  readonly peers: readonly MeshAddress[]
  readonly namespace: string
  readonly secret: string
  readonly resolve: ResolveHost
  readonly resolveIntervalMs: number
  /** Time limit of {@link MeshNode.start}. */
  readonly startTimeoutMs: number
}

const HANDSHAKE_TIMEOUT_MS = 5_000
/** `start` waits at most this long for missing peers. */
const MAX_START_MS = 2_000

/** A node of a mesh, from a start to the next stop: its listener, its dialers and its links. */
export class MeshNode {
  readonly peers: Peers
  readonly #options: MeshNodeOptions
  readonly #listener: Listener
  readonly #dialers: Dialers
  readonly #election: LinkElection
  #address: MeshAddress | undefined
  #isStopping = false
  /** Called on every change that `#until` may wait for. */
  readonly #waiting = new Set<() => void>()

  constructor(options: MeshNodeOptions) {
    this.#options = options
    const { nodeId, namespace, secret, rulesHash, logger, resolve, resolveIntervalMs } = options
    this.peers = new Peers({
      ...options,
      settled: ({ nodeId }) => {
        this.#dialers.settled(nodeId)
        this.#changed()
      },
      unlinked: ({ nodeId }) => {
        this.#dialers.unlinked(nodeId)
        this.#changed()
      },
    })
    const { peers } = this
    this.#election = new LinkElection({ nodeId, peers, logger, timeoutMs: HANDSHAKE_TIMEOUT_MS })
    const listenPort = () => this.#address?.port ?? 0
    const context = {
      identity: {
        nodeId,
        namespace,
        secret,
        rulesHash,
        get listenPort() {
          return listenPort()
        },
      },
      peers,
      logger,
      handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      admit: this.#election.admit.bind(this.#election),
      tried: () => this.#changed(),
    }
    this.#listener = new Listener(context)
    this.#dialers = new Dialers({ ...context, peerAddresses: options.peers, resolve, resolveIntervalMs })
  }

  /** Address it listens on. */
  get address(): MeshAddress | undefined {
    return this.#address
  }

  /**
   * Resolves when it listens and has tried every peer once, within a time limit.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  async start(): Promise<void> {
    const { listen, logger, startTimeoutMs } = this.#options
    this.#address = await this.#listener.start(listen)
    logger.info({ ...this.#address }, 'mesh is listening')
    this.peers.start()
    this.#dialers.start()
    await this.#until(() => this.#isStopping || this.#dialers.areTried, Math.min(startTimeoutMs, MAX_START_MS))
  }

  /** Says goodbye to all peers, waits within the limit until they have read it, and ends everything. */
  async stop(limitMs: number): Promise<void> {
    this.#isStopping = true
    this.#changed()
    this.#dialers.stop()
    this.#listener.stop()
    this.#election.stop()
    this.peers.leave()
    await this.#until(() => [...this.peers.all()].every(({ link }) => link === undefined), limitMs)
    this.peers.clear()
    this.#address = undefined
  }

  /** Resolves when the condition holds, or after the time. */
  async #until(condition: () => boolean, timeoutMs: number): Promise<void> {
    if (condition()) return
    const isMet = deferred()
    const look = () => {
      if (condition()) isMet.resolve()
    }
    this.#waiting.add(look)
    await within(isMet.promise, timeoutMs)
    this.#waiting.delete(look)
  }

  #changed(): void {
    for (const look of this.#waiting) look()
  }
}
