import { WebMQError } from 'webmq-client/protocol'
import type { MaybePromise } from '../../../kernel/base/maybe-promise.js'
import { encodeAttributes } from '../../../kernel/ports/attributes.js'
import {
  type Accepted,
  BROKER_STOP_MS,
  type Broker,
  type BrokerCapabilities,
  type BrokerSink,
  type OutboundMessage,
  type Position,
  type Reader,
  type ReadRange,
  type ReadResult,
} from '../../../kernel/ports/broker.js'
import type { BrokerStats } from '../../../kernel/ports/broker-stats.js'
import { inboundDefect, refusedMessage } from '../../../kernel/ports/inbound-check.js'
import { assertMessageId } from '../../../kernel/ports/message-id.js'
import { accepted, inbound, type MessageContent } from '../../../kernel/ports/messages.js'
import { isReserved } from '../../../kernel/ports/reserved-keys.js'
import { PublishIds } from '../dedupe/publish-ids.js'
import { hasHistory } from '../log/history-log.js'
import { OwnLog } from '../log/own-log.js'
import { bytesOf, MESSAGE_OVERHEAD_BYTES } from '../remote/pending-publishes.js'
import { KeyWriter } from './key-codec.js'
import { MeshNode } from './node.js'
import type { MeshAddress, MeshBrokerOptions } from './options.js'
import type { Peer } from './peer.js'
import type { MeshSink } from './peers.js'
import { ACCEPTED, SendBatch } from './send-batch.js'

/** Share of its time in which a node that stops waits for acknowledgements. The rest is for goodbyes. */
const ACKNOWLEDGE_SHARE = 2 / 3
/** Changes of patterns that a node may leave unacknowledged beside messages. They cannot be refused: one more gives it up. */
const MAX_TOLD = 65_536

/**
 * Nodes that are linked directly, over TCP.
 *
 * A publish resolves when every node that wants the message has acknowledged it, or was given up. A link that comes
 * back within `relinkMs` continues where it broke: no message is missing or duplicated. Otherwise the other nodes give
 * the node up, as they do when it leaves a message unacknowledged for `brokerTimeoutMs`. Both sides then report `gap`
 * to their listeners, and once more when they are linked again. So a message whose publish resolved has reached every
 * live node that wanted it, or a gap follows on that node.
 *
 * Each node keeps its own log of the messages it publishes and receives, in order of arrival. It asks its peers for all
 * logged keys, whether or not anyone listens. The log records gaps too: a read from before a gap reports it. A position
 * is valid on its own node only.
 *
 * The broker is `up` once it listens. Missing peers do not affect the node's own clients; `lostCount` and the server's
 * log report them.
 */
export class MeshBroker implements Broker, MeshSink {
  readonly name = 'mesh'
  readonly capabilities: BrokerCapabilities
  readonly #options: MeshBrokerOptions
  /** Peers that there are frames for at the end of the turn, and publishes that wait for them. */
  readonly #batch = new SendBatch()
  readonly #log: OwnLog
  readonly #patterns = new Set<string>()
  readonly #ids: PublishIds
  readonly #keys = new KeyWriter()
  #node: MeshNode | undefined
  #sink: BrokerSink | undefined
  /** Publishes are accepted: from the end of `start` until `stop`. */
  #isOpen = false
  #rejectedCount = 0
  #localCount = 0
  hasPublished = false
  readonly #counts = { receivedCount: 0, surplusCount: 0, malformedCount: 0 }
  /** Losses of earlier starts. */
  #lostCount = 0
  #stopping: Promise<void> | undefined

  constructor(options: MeshBrokerOptions) {
    this.#options = options
    // Each node would have a state of its own.
    this.#log = new OwnLog({ ...options, retain: undefined })
    this.#ids = new PublishIds(options)
    this.capabilities = {
      history: hasHistory(options),
      retained: false,
      ordered: false,
      sharedLog: false,
      confirms: true,
      queueGroups: true,
      durable: false,
      manyNodes: true,
    }
  }

  /** Address it listens on for other nodes; `undefined` while it does not. */
  get address(): MeshAddress | undefined {
    return this.#node?.address
  }

  /** Number of nodes that are linked in both directions. */
  get linkCount(): number {
    let count = 0
    for (const peer of this.#node?.peers.byId.values() ?? []) if (peer.link !== undefined && peer.isSettled) count++
    return count
  }

  /**
   * Resolves when it listens and has tried each peer once, at the latest after 2 s.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  async start(sink: BrokerSink): Promise<void> {
    this.#sink = sink
    this.#stopping = undefined
    this.#log.restart()
    const node = new MeshNode(this.#options, this, this.#batch)
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
    if (messageId === undefined) return this.#publish(message)
    assertMessageId(messageId)
    return this.#ids.once(messageId, () => this.#publish(message))
  }

  read(range: ReadRange, patterns: readonly string[], reader?: Reader): MaybePromise<ReadResult> {
    if (this.#node === undefined) throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it is not started' })
    const { history } = this.#log
    const isForeign = [range.since, range.before].some((from) => from !== undefined && from.epoch !== history.epoch)
    // The client may have received messages of this log on the other node: a replay would deliver them twice.
    if (isForeign && this.capabilities.history)
      return { messages: [], position: history.position, isPartial: false, gap: 'epoch-changed' }
    return history.read(range, patterns, reader)
  }

  logs(key: string): boolean {
    return this.#log.history.logs(key)
  }

  position(): Position | undefined {
    return this.capabilities.history && this.#node !== undefined ? this.#log.history.position : undefined
  }

  stats(): BrokerStats {
    return {
      acceptedCount: this.#localCount + this.#batch.acceptedCount,
      rejectedCount: this.#rejectedCount + this.#batch.rejectedCount,
      ...this.#counts,
      pendingCount: this.#batch.pendingCount,
      pendingBytes: this.#batch.pendingBytes,
      lostCount: this.#lostCount + (this.#node?.peers.lostCount ?? 0),
      behindCount: 0,
    }
  }

  stop(limitMs = BROKER_STOP_MS): Promise<void> {
    this.#stopping ??= this.#stop(limitMs)
    return this.#stopping
  }

  async #stop(limitMs: number): Promise<void> {
    this.#isOpen = false
    const node = this.#node
    if (node === undefined) return
    const endMs = performance.now() + limitMs
    await this.#batch.drained(limitMs * ACKNOWLEDGE_SHARE)
    this.#batch.fail(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the node stops' }))
    await node.stop(Math.max(0, endMs - performance.now()))
    this.#batch.end()
    this.#lostCount += node.peers.lostCount
    this.#node = undefined
    const sink = this.#sink
    this.#sink = undefined
    sink?.status('down')
  }

  #publish(message: OutboundMessage): Accepted | Promise<Accepted> {
    const { key, payload, messageId, attributes } = message
    const node = this.#node
    if (!this.#isOpen || node === undefined) throw this.#refuse('it is not started')
    const peers = node.peers.interest.match(key)
    const byteCount = bytesOf(message)
    if (peers.length > 0) this.#assertRoom(peers, byteCount)
    if (!this.hasPublished) this.hasPublished = !isReserved(key)
    const nowMs = messageId === undefined ? 0 : performance.now()
    const isDuplicate = messageId !== undefined && this.#log.ids.has(messageId, nowMs)
    const position = isDuplicate ? this.#log.ids.positionOf(messageId) : this.#log.record(message, messageId, nowMs)
    if (!isDuplicate) this.#sink?.deliver(inbound(message, position, message.publisher))
    const answer = position === undefined && !isDuplicate ? ACCEPTED : accepted(position, isDuplicate)
    if (peers.length === 0) {
      if (!isDuplicate) this.#localCount++
      return answer
    }
    // A duplicate is sent too: the node that published it first may have failed before all nodes got it.
    const keyBytes = this.#keys.bytesOf(key)
    const idBytes = messageId === undefined ? undefined : Buffer.from(messageId, 'latin1')
    const attributeBytes = attributes === undefined ? undefined : encodeAttributes(attributes)
    for (const { outbox } of peers) outbox.addMessage(keyBytes, payload, message.isBinary, idBytes, attributeBytes)
    const published = this.#batch.published(peers, byteCount)
    return answer === ACCEPTED ? published : published.then(() => answer)
  }

  #assertRoom(peers: readonly Peer[], byteCount: number): void {
    const { brokerMaxPendingBytes } = this.#options
    for (const { pendingBytes, nodeId } of peers) {
      // The first message may have any size, as large as all may be together.
      if (pendingBytes > 0 && pendingBytes + byteCount > brokerMaxPendingBytes) {
        throw this.#refuse(`node ${nodeId} has ${pendingBytes} bytes to acknowledge, at most ${brokerMaxPendingBytes}`)
      }
    }
  }

  #refuse(detail: string): WebMQError {
    this.#rejectedCount++
    return new WebMQError('E_BROKER_UNAVAILABLE', { detail })
  }

  /** Resolves when all peers know the change. They know the patterns of the history rules from the start. */
  #tell(pattern: string, isAdded: boolean): void | Promise<void> {
    if (this.#log.history.covers(pattern)) return
    const all = this.#node?.peers
    if (all === undefined || all.byId.size === 0) return
    const peers = [...all.byId.values()]
    for (const peer of peers) peer.tell(pattern, isAdded)
    const told = this.#batch.told(peers)
    const maxUnacked = MAX_TOLD + this.#options.brokerMaxPendingBytes / MESSAGE_OVERHEAD_BYTES
    for (const peer of peers) if (peer.outbox.unackedCount > maxUnacked) all.giveUp(peer, 'too much is unacknowledged')
    return told
  }

  *wantedPatterns(): Iterable<string> {
    if (this.capabilities.history) yield* this.#options.history.patterns
    for (const pattern of this.#patterns) if (!this.#log.history.covers(pattern)) yield pattern
  }

  received(message: MessageContent, messageId: string | undefined): void {
    this.#counts.receivedCount++
    const nowMs = messageId === undefined ? 0 : performance.now()
    if (messageId !== undefined && this.#log.ids.has(messageId, nowMs)) {
      this.#counts.surplusCount++
      return
    }
    const { maxPayloadBytes } = this.#options
    const defect = inboundDefect(message.key, message.payload, maxPayloadBytes)
    if (defect !== undefined) {
      const { key, payload } = message
      this.#log.refuse(message, messageId, nowMs)
      this.#sink?.refused(refusedMessage(defect, key, payload, maxPayloadBytes))
      return
    }
    const position = this.#log.record(message, messageId, nowMs)
    const isWanted = this.#sink?.deliver(inbound(message, position, undefined)) === true
    if (!isWanted && position === undefined) this.#counts.surplusCount++
  }

  malformed(): void {
    this.#counts.receivedCount++
    this.#counts.malformedCount++
    this.#sink?.refused({ reason: 'malformed', pattern: undefined, detail: 'a key that is not valid' })
  }

  gap(): void {
    this.#log.history.interrupt()
    if (this.#patterns.size > 0) this.#sink?.gap('broker-lost')
  }
}
