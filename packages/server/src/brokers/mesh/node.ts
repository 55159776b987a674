import { randomBytes } from 'node:crypto'
import { Conditions } from '../../base/conditions.js'
import type { MeshBroker } from './broker.js'
import { Dialers } from './dialers.js'
import { type Identity, NODE_ID_CHARS, rulesHashOf } from './handshake.js'
import { LinkElection } from './link-election.js'
import { Listener } from './listener.js'
import type { MeshAddress, MeshBrokerOptions } from './options.js'
import type { Peer } from './peer.js'
import { Peers, patienceMs } from './peers.js'

/** The process notes this often, within the time that it must not stand still, that it runs. */
const NOTES_PER_PATIENCE = 8
/** `start` waits at most this long for missing peers. */
const MAX_START_MS = 2_000

/** A node of a mesh, from a start to the next stop: its listener, its dialers and its links. */
export class MeshNode {
  readonly options: MeshBrokerOptions
  readonly broker: MeshBroker
  readonly identity: Identity
  readonly peers = new Peers(this)
  /** No peer gives this node up within less. */
  readonly #patienceMs: number
  #noteTimer: NodeJS.Timeout | undefined
  /** When the process is known to have run. */
  #noteMs = 0
  readonly election = new LinkElection(this)
  readonly #listener = new Listener(this)
  readonly #dialers = new Dialers(this)
  address: MeshAddress | undefined
  #isStopping = false
  /** Looked at after every change that `start` and `stop` may wait for. */
  readonly conditions = new Conditions()

  constructor(broker: MeshBroker) {
    const { options } = broker
    this.options = options
    this.broker = broker
    this.#patienceMs = patienceMs(options)
    const node = this
    this.identity = {
      nodeId: randomBytes(NODE_ID_CHARS / 2).toString('hex'),
      namespace: options.brokerNamespace,
      secret: options.secret ?? '',
      rulesHash: rulesHashOf(options),
      get listenPort() {
        return node.address?.port ?? 0
      },
    }
  }

  /** Resolves when it listens and has tried every peer once, within a time limit. */
  async start(): Promise<void> {
    const { listen, logger, brokerStartTimeoutMs } = this.options
    this.address = await this.#listener.start(listen)
    logger.info({ ...this.address }, 'mesh is listening')
    this.peers.start()
    this.#noteMs = performance.now()
    this.#noteTimer = setInterval(() => this.noteRunning(), this.#patienceMs / NOTES_PER_PATIENCE)
    this.#dialers.start()
    const maxMs = Math.min(brokerStartTimeoutMs, MAX_START_MS)
    await this.conditions.until(() => this.#isStopping || this.#dialers.areTried, maxMs)
  }

  /** Says goodbye to all peers, waits within the limit until they have read it, and ends everything. */
  async stop(limitMs: number): Promise<void> {
    this.#isStopping = true
    this.conditions.look()
    this.#dialers.stop()
    this.#listener.stop()
    clearInterval(this.#noteTimer)
    this.#noteTimer = undefined
    this.election.stop()
    this.peers.leave()
    await this.conditions.until(() => [...this.peers.byId.values()].every(({ link }) => link === undefined), limitMs)
    this.peers.clear()
    this.address = undefined
  }

  /**
   * Called before anything that has arrived is delivered. When this process has stood still for so long that its peers may
   * have given it up, what it reads next may come after messages that it was never sent.
   */
  noteRunning(): void {
    const nowMs = performance.now()
    const hasStoodStill = this.#noteTimer !== undefined && nowMs - this.#noteMs > this.#patienceMs
    this.#noteMs = nowMs
    if (hasStoodStill) this.broker.gap()
  }

  /** This node and the peer know each other's patterns. */
  settled({ nodeId }: Peer): void {
    this.#dialers.settled(nodeId)
    this.conditions.look()
  }

  unlinked({ nodeId }: Peer): void {
    this.#dialers.unlinked(nodeId)
    this.conditions.look()
  }
}
