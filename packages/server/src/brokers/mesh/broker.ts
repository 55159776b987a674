import { randomBytes } from 'node:crypto'
import { WebMQError } from 'webmq-client/protocol'
import type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerSink,
  BrokerStats,
  OutboundMessage,
  Position,
  ReadRange,
  ReadResult,
} from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { accepted, inbound } from '../../ports/messages.js'
import { PublishIds } from '../dedupe/publish-ids.js'
import { DedupeWindow } from '../dedupe/window.js'
import { HistoryLog, hasHistory } from '../log/history-log.js'
import { ACCEPTED } from './ack-group.js'
import type { MeshAddress } from './dialer.js'
import { lookUpHost, type ResolveHost } from './dialers.js'
import { NODE_ID_CHARS, rulesHashOf } from './hello.js'
import { KeyWriter } from './key-codec.js'
import type { PeerMessage } from './link.js'
import { MeshNode } from './node.js'
import type { Peer } from './peer.js'
import type { MeshLogger } from './peers.js'
import { SendBatch } from './send-batch.js'

/** Options of a {@link MeshBroker}; those of the same name as in {@link ServerOptions}. */
export interface MeshBrokerOptions extends HistoryOptions {
  /** Where other nodes reach this one; port 0 for a free one. */
  readonly listen: MeshAddress
  /** Where the other nodes are; this one may be among them. A name stands for all its addresses. */
  readonly peers: readonly MeshAddress[]
  /** Shared by all nodes of the mesh, and known to nobody else. */
  readonly secret?: string | undefined
  readonly brokerNamespace: string
  readonly brokerTimeoutMs: number
  readonly brokerStartTimeoutMs: number
  readonly brokerHeartbeatMs: number
  readonly brokerMaxPendingBytes: number
  readonly maxPayloadBytes: number
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
  readonly logger: MeshLogger
  /** Looks a name up; by default as the system does. */
  readonly resolve?: ResolveHost
  /** Interval at which names are looked up again; default 5,000. */
  readonly resolveIntervalMs?: number
  /** Time that a lost link has to come back before both nodes tell `gap`; default 1,000. */
  readonly relinkMs?: number
}

const DEFAULT_RESOLVE_INTERVAL_MS = 5_000
const DEFAULT_RELINK_MS = 1_000
/** A node that stops waits this long for pending messages, or `brokerTimeoutMs` if that is shorter. */
const MAX_DRAIN_MS = 2_000
/** A longer message id does not travel: it is known to its own node alone. */
const MAX_MESSAGE_ID_BYTES = 255

/**
 * Nodes that are linked to each other directly, over TCP, with nothing in between.
 *
 * A publish resolves when every node that wants the message has acknowledged it, or was given up. A lost link may come back within
 * `relinkMs` and goes on where it broke: nothing is missed, nothing comes twice. After that, or when a node leaves a message
 * unacknowledged for `brokerTimeoutMs`, the others give it up and go on without it. Both sides tell their listeners `gap`, then and
 * when they are linked again. So a message whose publish resolved has reached every live node that wanted it, or a gap follows there.
 *
 * Each node logs the messages that are published on it and those that come to it, in their order of arrival. It asks its peers for all keys that it logs,
 * whether or not somebody listens. A gap stands in its log too: a read from before it says so. Positions are good on their own node.
 *
 * It is `up` once it listens: missing peers take nothing from its own clients. `lostCount` and the log of the server tell of them.
 */
export class MeshBroker implements Broker {
  readonly name = 'mesh'
  readonly capabilities: BrokerCapabilities
  readonly #options: MeshBrokerOptions
  readonly #log: HistoryLog
  /** Patterns that are bound. */
  readonly #patterns = new Set<string>()
  readonly #ids: PublishIds
  readonly #keys = new KeyWriter()
  readonly #batch = new SendBatch()
  #node: MeshNode | undefined
  /** Ids of messages that were published here, or have come. */
  #knownIds: DedupeWindow
  #sink: BrokerSink | undefined
  /** Publishes are accepted; until `stop` is called. */
  #isOpen = false
  #rejectedCount = 0
  #localCount = 0
  #receivedCount = 0
  #surplusCount = 0
  #malformedCount = 0
  /** Of earlier starts. */
  #lostCount = 0
  #stopping: Promise<void> | undefined

  constructor(options: MeshBrokerOptions) {
    this.#options = options
    this.#log = new HistoryLog(options)
    this.#ids = new PublishIds({ windowMs: options.dedupeWindowMs, maxIds: options.dedupeMaxIds })
    this.#knownIds = this.#createKnownIds()
    this.capabilities = {
      history: hasHistory(options),
      ordered: false,
      sharedLog: false,
      confirms: true,
      queueGroups: false,
      durable: false,
      manyNodes: true,
    }
  }

  /** Where it listens for other nodes; `undefined` while it does not. */
  get address(): MeshAddress | undefined {
    return this.#node?.address
  }

  /** Nodes that are linked now, in both directions. */
  get linkCount(): number {
    let count = 0
    for (const peer of this.#node?.peers.all() ?? []) if (peer.link !== undefined && peer.isSettled) count++
    return count
  }

  /**
   * Resolves when it listens and has tried each peer once, after 2 s at the latest.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  async start(sink: BrokerSink): Promise<void> {
    const options = this.#options
    this.#sink = sink
    this.#stopping = undefined
    this.#knownIds = this.#createKnownIds()
    const nodeId = randomBytes(NODE_ID_CHARS / 2).toString('hex')
    this.#log.restart(nodeId)
    const node = new MeshNode({
      nodeId,
      rulesHash: rulesHashOf(options),
      listen: options.listen,
      peers: options.peers,
      namespace: options.brokerNamespace,
      secret: options.secret ?? '',
      heartbeatMs: options.brokerHeartbeatMs,
      timeoutMs: options.brokerTimeoutMs,
      relinkMs: options.relinkMs ?? DEFAULT_RELINK_MS,
      startTimeoutMs: options.brokerStartTimeoutMs,
      resolve: options.resolve ?? lookUpHost,
      resolveIntervalMs: options.resolveIntervalMs ?? DEFAULT_RESOLVE_INTERVAL_MS,
      logger: options.logger,
      wantedPatterns: () => this.#wantedPatterns(),
      hasPublished: () => this.#localCount > 0 || this.#batch.acceptedCount > 0 || this.#batch.pendingCount > 0,
      message: (message, messageId) => this.#received(message, messageId),
      malformed: () => {
        this.#receivedCount++
        this.#malformedCount++
      },
      gap: () => this.#gap(),
      dirty: (peer) => this.#batch.add(peer),
    })
    this.#node = node
    try {
      await node.start()
      if (this.#stopping !== undefined) throw this.#refuse('it was stopped while it started')
    } catch (error) {
      await this.stop()
      throw error
    }
    this.#isOpen = true
    sink.status('up')
  }

  bind(pattern: string): void | Promise<void> {
    this.#patterns.add(pattern)
    return this.#tell(pattern, true)
  }

  unbind(pattern: string): void | Promise<void> {
    this.#patterns.delete(pattern)
    return this.#tell(pattern, false)
  }

  publish(message: OutboundMessage): Accepted | Promise<Accepted> {
    const { messageId } = message
    return messageId === undefined ? this.#publish(message) : this.#ids.once(messageId, () => this.#publish(message))
  }

  read(range: ReadRange, patterns: readonly string[]): ReadResult {
    if (this.#node === undefined) throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it is not started' })
    const { position } = this.#log
    const isForeign = range.since !== undefined && range.since.epoch !== position.epoch
    // The log may hold messages from before a position of another node: replaying them would deliver them twice.
    if (isForeign && this.capabilities.history)
      return { messages: [], position, isPartial: false, gap: 'epoch-changed' }
    return this.#log.read(range, patterns)
  }

  position(): Position | undefined {
    return this.capabilities.history && this.#node !== undefined ? this.#log.position : undefined
  }

  stats(): BrokerStats {
    return {
      acceptedCount: this.#localCount + this.#batch.acceptedCount,
      rejectedCount: this.#rejectedCount + this.#batch.rejectedCount,
      receivedCount: this.#receivedCount,
      surplusCount: this.#surplusCount,
      malformedCount: this.#malformedCount,
      pendingCount: this.#batch.pendingCount,
      pendingBytes: this.#batch.pendingBytes,
      lostCount: this.#lostCount + (this.#node?.peers.lostCount ?? 0),
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#isOpen = false
    const node = this.#node
    if (node === undefined) return
    await this.#batch.drained(Math.min(this.#options.brokerTimeoutMs, MAX_DRAIN_MS))
    this.#batch.fail(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the node stops' }))
    await node.stop()
    this.#batch.end()
    this.#lostCount += node.peers.lostCount
    this.#node = undefined
    const sink = this.#sink
    this.#sink = undefined
    sink?.status('down')
  }

  #publish(message: OutboundMessage): Accepted | Promise<Accepted> {
    const { key, payload, messageId } = message
    const node = this.#node
    if (!this.#isOpen || node === undefined) throw this.#refuse('it is not started')
    const peers = node.peers.interest.match(key)
    if (peers.length > 0) this.#assertRoom(peers, payload.length)
    const nowMs = messageId === undefined ? 0 : performance.now()
    const isDuplicate = messageId !== undefined && this.#knownIds.has(messageId, nowMs)
    const position = isDuplicate ? this.#knownIds.positionOf(messageId) : this.#record(message, messageId, nowMs)
    if (!isDuplicate) this.#sink?.deliver(inbound(message, position, message.origin))
    const answer = position === undefined && !isDuplicate ? ACCEPTED : accepted(position, isDuplicate)
    if (peers.length === 0) {
      if (!isDuplicate) this.#localCount++
      return answer
    }
    // A duplicate goes out too: its first node may have been lost before it reached them all.
    const keyBytes = this.#keys.bytesOf(key)
    const idBytes = messageIdBytes(messageId)
    for (const { outbox } of peers) outbox.addMessage(keyBytes, payload, message.isBinary, idBytes)
    const published = this.#batch.published(peers, payload.length)
    return answer === ACCEPTED ? published : published.then(() => answer)
  }

  #assertRoom(peers: readonly Peer[], byteCount: number): void {
    const { brokerMaxPendingBytes } = this.#options
    for (const { pendingBytes, nodeId } of peers) {
      if (pendingBytes + byteCount > brokerMaxPendingBytes) {
        throw this.#refuse(`node ${nodeId} has ${pendingBytes} bytes to acknowledge, at most ${brokerMaxPendingBytes}`)
      }
    }
  }

  #refuse(detail: string): WebMQError {
    this.#rejectedCount++
    return new WebMQError('E_BROKER_UNAVAILABLE', { detail })
  }

  /** Resolves when all peers know. They know the patterns of the history rules from the start. */
  #tell(pattern: string, isAdded: boolean): void | Promise<void> {
    if (this.#log.covers(pattern)) return
    const peers = [...(this.#node?.peers.all() ?? [])]
    if (peers.length === 0) return
    for (const peer of peers) peer.tell(pattern, isAdded)
    return this.#batch.told(peers)
  }

  *#wantedPatterns(): Iterable<string> {
    if (this.capabilities.history) yield* this.#options.history.patterns
    for (const pattern of this.#patterns) if (!this.#log.covers(pattern)) yield pattern
  }

  #received(message: PeerMessage, messageId: string | undefined): void {
    this.#receivedCount++
    if (message.payload.length > this.#options.maxPayloadBytes) {
      this.#malformedCount++
      return
    }
    const nowMs = messageId === undefined ? 0 : performance.now()
    if (messageId !== undefined && this.#knownIds.has(messageId, nowMs)) {
      this.#surplusCount++
      return
    }
    const position = this.#record(message, messageId, nowMs)
    const isWanted = this.#sink?.deliver(inbound(message, position, undefined)) === true
    if (!isWanted && position === undefined) this.#surplusCount++
  }

  /** Logs a message that is new, if its key is logged, and remembers its id. */
  #record({ key, payload, isBinary }: PeerMessage, messageId: string | undefined, nowMs: number): Position | undefined {
    const position = this.#log.logs(key) ? this.#log.append(key, payload, isBinary) : undefined
    if (messageId !== undefined) this.#knownIds.remember(messageId, position, nowMs)
    return position
  }

  #createKnownIds(): DedupeWindow {
    return new DedupeWindow({ windowMs: this.#options.dedupeWindowMs, maxIds: this.#options.dedupeMaxIds })
  }

  #gap(): void {
    this.#log.interrupt()
    if (this.#patterns.size > 0) this.#sink?.gap('broker-lost')
  }
}

/** The id as it travels; `undefined` when it is too long. */
function messageIdBytes(messageId: string | undefined): Uint8Array | undefined {
  if (messageId === undefined) return undefined
  const bytes = Buffer.from(messageId)
  return bytes.length <= MAX_MESSAGE_ID_BYTES ? bytes : undefined
}

/** Makes a node of a mesh; it does nothing yet. */
export function createMeshBroker(options: MeshBrokerOptions): MeshBroker {
  return new MeshBroker(options)
}
