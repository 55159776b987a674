import { randomBytes } from 'node:crypto'
import { Conditions } from '../../base/conditions.js'
import { Dialers } from './dialers.js'
import { type Identity, NODE_ID_CHARS, rulesHashOf } from './handshake.js'
import type { PeerMessage } from './link.js'
import { LinkElection } from './link-election.js'
import { Listener } from './listener.js'
import type { MeshAddress, MeshBrokerOptions } from './options.js'
import type { Peer } from './peer.js'
import { Peers, patienceMs } from './peers.js'
import { Standstill } from './standstill.js'

export interface MeshNodeEvents {
  wantedPatterns(): Iterable<string>
  /** Whether this node has accepted a message since its start. */
  hasPublished(): boolean
  message(message: PeerMessage, messageId: string | undefined): void
  /** A message without a valid key was dropped. */
  malformed(): void
  /** Messages of a peer may be missing. */
  gap(): void
  /** There are frames to send to a peer at the end of the turn. */
  dirty(peer: Peer): void
}

/** `start` waits at most this long for missing peers. */
const MAX_START_MS = 2_000

/** A node of a mesh, from a start to the next stop: its listener, its dialers and its links. */
export class MeshNode {
  readonly options: MeshBrokerOptions
  readonly events: MeshNodeEvents
  readonly identity: Identity
  readonly peers = new Peers(this)
  readonly standstill: Standstill
  readonly election = new LinkElection(this)
  readonly #listener = new Listener(this)
  readonly #dialers = new Dialers(this)
  address: MeshAddress | undefined
  #isStopping = false
  /** Looked at after every change that `start` and `stop` may wait for. */
  readonly conditions = new Conditions()

  constructor(options: MeshBrokerOptions, events: MeshNodeEvents) {
    this.options = options
    this.events = events
    this.standstill = new Standstill(patienceMs(options), () => events.gap())
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

  /**
   * Resolves when it listens and has tried every peer once, within a time limit.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  async start(): Promise<void> {
    const { listen, logger, brokerStartTimeoutMs } = this.options
    this.address = await this.#listener.start(listen)
    logger.info({ ...this.address }, 'mesh is listening')
    this.peers.start()
    this.standstill.start()
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
    this.standstill.stop()
    this.election.stop()
    this.peers.leave()
    await this.conditions.until(() => [...this.peers.byId.values()].every(({ link }) => link === undefined), limitMs)
    this.peers.clear()
    this.address = undefined
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
