import { randomBytes } from 'node:crypto'
import { Conditions } from '../../../kernel/base/conditions.js'
import { Dialers } from './dialers.js'
import { NODE_ID_CHARS, rulesHashOf } from './handshake.js'
import { LinkElection } from './link-election.js'
import { Listener } from './listener.js'
import type { MeshAddress, MeshBrokerOptions } from './options.js'
import { type MeshSink, Peers } from './peers.js'
import type { SendBatch } from './send-batch.js'

/** `start` waits at most this long for missing peers. */
const MAX_START_MS = 2_000

/** A node of a mesh, from a start to the next stop: its listener, its dialers and its links. */
export class MeshNode {
  readonly #options: MeshBrokerOptions
  readonly peers: Peers
  readonly #election: LinkElection
  readonly #listener: Listener
  readonly #dialers: Dialers
  address: MeshAddress | undefined
  #isStopping = false
  /** Looked at after every change that `start` and `stop` may wait for. */
  readonly #conditions = new Conditions()

  constructor(options: MeshBrokerOptions, sink: MeshSink, batch: SendBatch) {
    this.#options = options
    const node = this
    const identity = {
      nodeId: randomBytes(NODE_ID_CHARS / 2).toString('hex'),
      namespace: options.brokerNamespace,
      secret: options.secret ?? '',
      rulesHash: rulesHashOf(options),
      get listenPort() {
        return node.address?.port ?? 0
      },
    }
    const { logger } = options
    const peers = new Peers({
      ...options,
      rulesHash: identity.rulesHash,
      sink,
      batch,
      settled: (nodeId) => {
        this.#dialers.settled(nodeId)
        this.#conditions.look()
      },
      unlinked: (nodeId) => {
        this.#dialers.unlinked(nodeId)
        this.#conditions.look()
      },
      isDialled: (nodeId) => this.#dialers.has(nodeId),
    })
    this.peers = peers
    const election = new LinkElection(identity.nodeId, peers, logger)
    this.#election = election
    this.#listener = new Listener(identity, logger, (wire, hello) => election.admit(wire, hello, false))
    this.#dialers = new Dialers({ options, identity, peers, election, conditions: this.#conditions })
  }

  /** Resolves when it listens and has tried every peer once, within a time limit. */
  async start(): Promise<void> {
    const { listen, logger, brokerStartTimeoutMs } = this.#options
    const address = await this.#listener.start(listen)
    if (this.#isStopping) return
    this.address = address
    logger.info({ ...this.address }, 'mesh is listening')
    this.peers.start()
    this.#dialers.start()
    const maxMs = Math.min(brokerStartTimeoutMs, MAX_START_MS)
    await this.#conditions.until(() => this.#isStopping || this.#dialers.areTried, maxMs)
  }

  /** Says goodbye to all peers, waits within the limit until they have read it, and ends everything. */
  async stop(limitMs: number): Promise<void> {
    this.#isStopping = true
    this.#conditions.look()
    this.#dialers.stop()
    this.#listener.stop()
    this.#election.stop()
    this.peers.leave()
    await this.#conditions.until(() => [...this.peers.byId.values()].every(({ link }) => link === undefined), limitMs)
    this.peers.clear()
    this.address = undefined
  }
}
