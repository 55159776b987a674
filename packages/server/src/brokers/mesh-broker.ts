import { WebMQError } from 'webmq-client/protocol'
import type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerSink,
  BrokerStats,
  OutboundMessage,
  ReadResult,
} from '../broker.js'
import { Router } from '../router.js'
import type { MeshAddress } from './mesh/dialer.js'
import { lookUpHost, type ResolveHost } from './mesh/dialers.js'
import { KeyWriter } from './mesh/key-codec.js'
import { Mesh } from './mesh/mesh.js'
import type { MeshLog } from './mesh/mesh-log.js'
import type { Peer } from './mesh/peer.js'
import { ACCEPTED } from './mesh/receipt.js'
import { Turn } from './mesh/turn.js'
import type { HistoryOptions } from './ordered-log.js'
import { PublishIds } from './publish-ids.js'

/** Options of a {@link MeshBroker}; those of the same name as in {@link ServerOptions}. */
export interface MeshBrokerOptions extends HistoryOptions {
  /** Where other nodes reach this one; port 0 for a free one. */
  readonly listen: MeshAddress
  /** Where the other nodes are; this one may be among them. A name stands for all its addresses. */
  readonly peers: readonly MeshAddress[]
  /** What all nodes share and nobody else knows. */
  readonly secret?: string | undefined
  readonly brokerNamespace: string
  readonly brokerTimeoutMs: number
  readonly brokerStartTimeoutMs: number
  readonly brokerHeartbeatMs: number
  readonly brokerMaxPendingBytes: number
  readonly maxPayloadBytes: number
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
  readonly log: MeshLog
  /** Looks a name up; by default as the system does. */
  readonly resolve?: ResolveHost
  /** Interval at which names are looked up again; default 5,000. */
  readonly resolveIntervalMs?: number
}

const CAPABILITIES: BrokerCapabilities = {
  history: false,
  ordered: false,
  confirms: true,
  queueGroups: false,
  durable: false,
  manyNodes: true,
}

const DEFAULT_RESOLVE_INTERVAL_MS = 5_000
/** What is pending when a node stops gets this long, or `brokerTimeoutMs` if that is shorter. */
const MAX_DRAIN_MS = 2_000

/**
 * Nodes that are linked to each other directly, over TCP: there is nothing between them.
 *
 * A publish resolves when every node that listens to its key has taken the message in, or was given up. A link that is lost
 * may come back within a second, and goes on where it broke: nothing is missing, nothing comes twice. After that, or when a node leaves
 * a message unacknowledged for `brokerTimeoutMs`, the others give it up and go on without it; both sides tell their listeners
 * `gap`, then and when they are linked again. So a message whose publish resolved has reached every live node that listened to it,
 * or is followed by a gap there.
 *
 * It is `up` from when it listens: peers that are missing take nothing from its own clients. `lostCount` and the log tell of them.
 */
export class MeshBroker implements Broker {
  readonly name = 'mesh'
  readonly capabilities = CAPABILITIES
  readonly #options: MeshBrokerOptions
  readonly #interest = new Router()
  readonly #ids: PublishIds
  readonly #keys = new KeyWriter()
  readonly #turn = new Turn()
  #mesh: Mesh | undefined
  #sink: BrokerSink | undefined
  /** Publishes are taken; until `stop` is called. */
  #isOpen = false
  #rejectedCount = 0
  #localCount = 0
  #receivedCount = 0
  #surplusCount = 0
  #malformedCount = 0
  /** Of the lives before this one. */
  #lostCount = 0
  #stopping: Promise<void> | undefined

  constructor(options: MeshBrokerOptions) {
    this.#options = options
    this.#ids = new PublishIds({ windowMs: options.dedupeWindowMs, maxIds: options.dedupeMaxIds })
  }

  /** Where it listens for other nodes; `undefined` while it does not. */
  get address(): MeshAddress | undefined {
    return this.#mesh?.address
  }

  /** Nodes that are linked now, in both directions. */
  get linkCount(): number {
    let count = 0
    for (const peer of this.#mesh?.peers.all() ?? []) if (peer.link !== undefined && peer.isSettled) count++
    return count
  }

  /**
   * Resolves when it listens and each peer was tried once, after 2 s at the latest.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  async start(sink: BrokerSink): Promise<void> {
    const options = this.#options
    this.#sink = sink
    this.#stopping = undefined
    const mesh = new Mesh({
      listen: options.listen,
      peers: options.peers,
      namespace: options.brokerNamespace,
      secret: options.secret ?? '',
      heartbeatMs: options.brokerHeartbeatMs,
      timeoutMs: options.brokerTimeoutMs,
      startTimeoutMs: options.brokerStartTimeoutMs,
      resolve: options.resolve ?? lookUpHost,
      resolveIntervalMs: options.resolveIntervalMs ?? DEFAULT_RESOLVE_INTERVAL_MS,
      log: options.log,
      localPatterns: () => this.#localPatterns(),
      hasPublished: () => this.#localCount > 0 || this.#turn.acceptedCount > 0 || this.#turn.pendingCount > 0,
      message: (key, payload, isBinary) => this.#received(key, payload, isBinary),
      malformed: () => {
        this.#receivedCount++
        this.#malformedCount++
      },
      gap: () => this.#gap(),
      dirty: (peer) => this.#turn.add(peer),
    })
    this.#mesh = mesh
    try {
      await mesh.start()
      if (this.#stopping !== undefined) throw this.#refuse('it was stopped while it started')
    } catch (error) {
      await this.stop()
      throw error
    }
    this.#isOpen = true
    sink.status('up')
  }

  bind(pattern: string): void | Promise<void> {
    const isFirst = !this.#interest.has(pattern)
    this.#interest.add(pattern)
    if (isFirst) return this.#tell(pattern, true)
  }

  unbind(pattern: string): void | Promise<void> {
    if (this.#interest.remove(pattern)) return this.#tell(pattern, false)
  }

  publish(message: OutboundMessage): Accepted | Promise<Accepted> {
    const { messageId } = message
    if (messageId === undefined) return this.#publish(message)
    return this.#ids.once(messageId, () => this.#publish(message))
  }

  read(): ReadResult {
    throw new WebMQError('E_UNSUPPORTED', { detail: 'history with mesh' })
  }

  position(): undefined {
    return undefined
  }

  stats(): BrokerStats {
    return {
      acceptedCount: this.#localCount + this.#turn.acceptedCount,
      rejectedCount: this.#rejectedCount + this.#turn.rejectedCount,
      receivedCount: this.#receivedCount,
      surplusCount: this.#surplusCount,
      malformedCount: this.#malformedCount,
      pendingCount: this.#turn.pendingCount,
      pendingBytes: this.#turn.pendingBytes,
      lostCount: this.#lostCount + (this.#mesh?.peers.lostCount ?? 0),
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#isOpen = false
    const mesh = this.#mesh
    if (mesh === undefined) return
    await this.#turn.drained(Math.min(this.#options.brokerTimeoutMs, MAX_DRAIN_MS))
    this.#turn.fail(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the node stops' }))
    await mesh.stop()
    this.#turn.end()
    this.#lostCount += mesh.peers.lostCount
    this.#mesh = undefined
    const sink = this.#sink
    this.#sink = undefined
    sink?.status('down')
  }

  #publish({ key, payload, isBinary, origin }: OutboundMessage): Accepted | Promise<Accepted> {
    const mesh = this.#mesh
    if (!this.#isOpen || mesh === undefined) throw this.#refuse('it is not started')
    const peers = mesh.peers.interest.match(key)
    if (peers.length > 0) this.#assertRoom(peers, payload.length)
    if (this.#interest.match(key).length > 0) {
      this.#sink?.deliver(origin === undefined ? { key, payload, isBinary } : { key, payload, isBinary, origin })
    }
    if (peers.length === 0) {
      this.#localCount++
      return ACCEPTED
    }
    const keyBytes = this.#keys.bytesOf(key)
    for (const peer of peers) peer.outbox.addMessage(keyBytes, payload, isBinary)
    return this.#turn.published(peers, payload.length)
  }

  #assertRoom(peers: readonly Peer[], byteCount: number): void {
    const { brokerMaxPendingBytes } = this.#options
    for (const { pendingBytes, node } of peers) {
      if (pendingBytes + byteCount > brokerMaxPendingBytes) {
        throw this.#refuse(`node ${node} has ${pendingBytes} bytes to take in, at most ${brokerMaxPendingBytes}`)
      }
    }
  }

  #refuse(detail: string): WebMQError {
    this.#rejectedCount++
    return new WebMQError('E_BROKER_UNAVAILABLE', { detail })
  }

  /** Resolves when all peers know. */
  #tell(pattern: string, isAdded: boolean): void | Promise<void> {
    const peers = [...(this.#mesh?.peers.all() ?? [])]
    if (peers.length === 0) return
    for (const peer of peers) peer.tell(pattern, isAdded)
    return this.#turn.told(peers)
  }

  *#localPatterns(): Iterable<string> {
    for (const { pattern } of this.#interest.routes()) yield pattern
  }

  #received(key: string, payload: Uint8Array, isBinary: boolean): void {
    this.#receivedCount++
    if (payload.length > this.#options.maxPayloadBytes) this.#malformedCount++
    else if (this.#interest.match(key).length === 0) this.#surplusCount++
    else this.#sink?.deliver({ key, payload, isBinary })
  }

  #gap(): void {
    if (this.#interest.patternCount > 0) this.#sink?.gap('broker-lost')
  }
}

/** Makes a node of a mesh; it does nothing yet. */
export function createMeshBroker(options: MeshBrokerOptions): MeshBroker {
  return new MeshBroker(options)
}
