import { randomBytes } from 'node:crypto'
import { WebMQError } from 'webmq-client/protocol'
import { Router } from '../../patterns/router.js'
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
import { hasHistory } from '../log/history-log.js'
import type { MeshAddress } from './dialer.js'
import { lookUpHost, type ResolveHost } from './dialers.js'
import { NODE_CHARS } from './hello.js'
import { MeshHistory, rulesOf } from './history.js'
import { KeyWriter } from './key-codec.js'
import type { MeshLog } from './logger.js'
import { Mesh } from './mesh.js'
import { type MarkedMessage, messageIdBytes } from './message-frame.js'
import type { Peer } from './peer.js'
import { ACCEPTED } from './receipt.js'
import { Turn } from './turn.js'

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
 * What is logged is not given up: every node has a log of its own, in its order of arrival, and catches up with the others from theirs. Positions
 * are of the node that gives them, and good on all.
 *
 * It is `up` from when it listens: peers that are missing take nothing from its own clients. `lostCount` and the log tell of them.
 */
export class MeshBroker implements Broker {
  readonly name = 'mesh'
  readonly capabilities: BrokerCapabilities
  readonly #options: MeshBrokerOptions
  readonly #interest = new Router()
  readonly #ids: PublishIds
  readonly #keys = new KeyWriter()
  readonly #turn = new Turn(() => this.#history?.turnEnds())
  #mesh: Mesh | undefined
  #history: MeshHistory | undefined
  /** Ids of messages that were published here, or have come. */
  #heard: DedupeWindow
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
    this.#heard = this.#createHeard()
    this.capabilities = {
      history: hasHistory(options),
      ordered: false,
      confirms: true,
      queueGroups: false,
      durable: false,
      manyNodes: true,
    }
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
   * Resolves when it listens and each peer was tried once, after 2 s at the latest; with history, when it has taken in their logs, within 3 s more.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  async start(sink: BrokerSink): Promise<void> {
    const options = this.#options
    this.#sink = sink
    this.#stopping = undefined
    this.#heard = this.#createHeard()
    const node = randomBytes(NODE_CHARS / 2).toString('hex')
    const history = this.capabilities.history ? this.#createHistory(node) : undefined
    this.#history = history
    const mesh = new Mesh({
      node,
      rules: rulesOf(options),
      history,
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
      marked: (peer, message, key, payload) => this.#receivedMarked(peer, message, key, payload),
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
      await history?.caughtUp()
      if (this.#stopping !== undefined) throw this.#refuse('it was stopped while it started')
    } catch (error) {
      await this.stop()
      throw error
    }
    history?.up()
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
    return this.#ids.once(messageId, () => {
      if (!this.#heard.has(messageId, performance.now())) return this.#publish(message)
      return accepted(this.#heard.positionOf(messageId), true)
    })
  }

  read(range: ReadRange, patterns: readonly string[]): ReadResult | Promise<ReadResult> {
    if (!this.capabilities.history) throw new WebMQError('E_UNSUPPORTED', { detail: 'history with mesh' })
    if (this.#history === undefined) throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it is not started' })
    return this.#history.read(range, patterns)
  }

  position(): Position | undefined {
    return this.#history?.position
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
    // The others are told where everything stands in this node's log, before it says goodbye: its clients go to them.
    this.#turn.end()
    await mesh.stop()
    this.#turn.end()
    this.#lostCount += mesh.peers.lostCount
    this.#mesh = undefined
    this.#history = undefined
    const sink = this.#sink
    this.#sink = undefined
    sink?.status('down')
  }

  #publish(message: OutboundMessage): Accepted | Promise<Accepted> {
    const { key, payload, messageId } = message
    const mesh = this.#mesh
    if (!this.#isOpen || mesh === undefined) throw this.#refuse('it is not started')
    const listening = mesh.peers.interest.match(key)
    const history = this.#history?.logs(key) === true ? this.#history : undefined
    const peers = history === undefined ? listening : history.receiversOf(listening)
    if (peers.length > 0) this.#assertRoom(peers, payload.length)
    const logged = history?.append({ key, payload, isBinary: message.isBinary, messageId })
    if (messageId !== undefined) this.#heard.remember(messageId, logged?.position, performance.now())
    if (this.#interest.match(key).length > 0) this.#sink?.deliver(inbound(message, logged?.position, message.publisher))
    const answer = logged === undefined ? ACCEPTED : accepted(logged.position, false)
    if (peers.length === 0) {
      this.#localCount++
      return answer
    }
    this.#send(peers, message, logged?.sequence ?? 0)
    const published = this.#turn.published(peers, payload.length)
    return logged === undefined ? published : published.then(() => answer)
  }

  #send(peers: readonly Peer[], { key, payload, isBinary, messageId }: OutboundMessage, sequence: number): void {
    const keyBytes = this.#keys.bytesOf(key)
    if (sequence === 0 && messageId === undefined) {
      for (const { outbox } of peers) outbox.addMessage(keyBytes, payload, isBinary)
      return
    }
    const marks = { isBinary, sequence, origin: 0, ageMs: undefined, messageId: messageIdBytes(messageId) }
    const unlogged = { ...marks, sequence: 0 }
    for (const { outbox, history } of peers)
      outbox.addMarked(history === undefined ? unlogged : marks, keyBytes, payload)
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

  #receivedMarked(peer: Peer, message: MarkedMessage, key: string, payload: Uint8Array): void {
    const { isBinary, messageId, sequence } = message
    this.#receivedCount++
    const isTooLarge = payload.length > this.#options.maxPayloadBytes
    if (isTooLarge) this.#malformedCount++
    const nowMs = messageId === undefined ? 0 : performance.now()
    const isKnown = messageId !== undefined && this.#heard.has(messageId, nowMs)
    const isNew = !isTooLarge && !isKnown
    const original = isNew ? 'none' : isKnown ? this.#heard.positionOf(messageId) : undefined
    const entry = { key, payload, isBinary, messageId }
    const taken = sequence > 0 ? this.#history?.take(peer, message, entry, original) : undefined
    if (!isNew || (sequence > 0 && taken === undefined)) {
      if (!isTooLarge) this.#surplusCount++
      return
    }
    if (messageId !== undefined) this.#heard.remember(messageId, taken?.position, nowMs)
    const isWanted = this.#interest.match(key).length > 0
    if (isWanted && taken?.isWanted !== false) this.#sink?.deliver(inbound(entry, taken?.position, undefined))
    else if (!isWanted && taken === undefined) this.#surplusCount++
  }

  #createHeard(): DedupeWindow {
    return new DedupeWindow({ windowMs: this.#options.dedupeWindowMs, maxIds: this.#options.dedupeMaxIds })
  }

  #createHistory(node: string): MeshHistory {
    return new MeshHistory({
      node,
      options: this.#options,
      maxIds: this.#options.dedupeMaxIds,
      dirty: (peer) => this.#turn.add(peer),
      wake: () => this.#turn.wake(),
      gap: (reason) => {
        if (this.#interest.patternCount > 0) this.#sink?.gap(reason)
      },
    })
  }

  /** What is not logged may be missing. */
  #gap(): void {
    const history = this.#history
    const isAffected = (pattern: string) => history?.covers(pattern) !== true
    for (const { pattern } of this.#interest.routes()) {
      if (!isAffected(pattern)) continue
      this.#sink?.gap('broker-lost', history === undefined ? undefined : isAffected)
      return
    }
  }
}

/** Makes a node of a mesh; it does nothing yet. */
export function createMeshBroker(options: MeshBrokerOptions): MeshBroker {
  return new MeshBroker(options)
}
