import { isId } from 'webmq-client/protocol'
import { type Deadline, Deadlines } from '../deadlines.js'
import type { Logger } from '../logger.js'
import type { Broker, BrokerStatus, InboundMessage } from '../ports/broker.js'
import { deferred } from '../ports/deferred.js'
import { NodeChannel } from './node-channel.js'
import { type Fields, isCount, listOf, NODE_FORMAT, type NodeMessage } from './node-message.js'

/** A table that nodes share. */
export interface NodeTable {
  /** Topic of its messages. */
  readonly name: string
  /** Tells other nodes, in each lease, what this node has: a version, or a digest. */
  readonly mark: number | string
  /** Whether this node has what the others have, as far as it knows. */
  readonly isComplete: boolean
  /**
   * What another node has; `undefined` when it does not take part.
   * @param isGreeting The node has just become known, or may have missed messages.
   */
  compare(node: string, mark: unknown, isGreeting: boolean): void
  /** Takes a message of another node; returns whether it could be read. MUST NOT call the broker. */
  receive(message: NodeMessage): boolean
  /** A node is gone. @param hasLeft It has said so, and did not crash. */
  left(node: string, hasLeft: boolean): void
  /** Called at intervals: asks again for what has not come. */
  retry?(): void
  /** Messages were lost: asks again at once. */
  restart(): void
  stop(): void
}

/** Takes messages about a topic that is no table; returns whether the message could be read. MUST NOT call the broker. */
export type TopicHandler = (message: NodeMessage) => boolean

/** Settings of {@link Nodes}. */
export interface NodesContext {
  /** Name of this node, new with every start: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly node: string
  /** Of the software. */
  readonly version: string
  /** A hash of the options that all nodes must share. */
  readonly fingerprint: string
  readonly broker: Pick<Broker, 'capabilities' | 'bind' | 'publish'>
  /** Largest message that other nodes accept. */
  readonly maxPayloadBytes: number
  /** When a node crashes, what it shares is gone everywhere within this time. */
  readonly ttlMs: number
  /** Nodes that are known, and do not answer within this time, are not waited for. Default 1,000. */
  readonly waitMs?: number
  readonly logger: Pick<Logger, 'debug' | 'warn'>
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** Counters since the start; gauges at the time of the call. */
export interface NodesStats {
  /** Other nodes. */
  readonly peerCount: number
  /** Other nodes with other options, or of another version. */
  readonly differentCount: number
  /** Messages that could not be read, and those of nodes above the limit. */
  readonly droppedCount: number
}

/** The topic of the nodes themselves. */
const TOPIC = 'nodes'
/** Share of the time to live after which a lease is renewed, so that two renewals may get lost. */
const LEASE_SHARE = 1 / 3
/** Share of the time to live for which a lease is valid. The rest covers the delay of messages. */
const VALID_SHARE = 5 / 6
/** A node that starts is alone if no other node has answered by then; and later it knows all of them. */
const GREETING_MS = 250
const WAIT_MS = 1_000
/** Most nodes, so that forged names from the broker cannot fill the memory. */
const MAX_PEERS = 1_024
/** Longest accepted lease. */
const MAX_VALID_MS = 3_600_000

interface Peer {
  /** Absent while this node is cut off. */
  expiry: Deadline | undefined
  hasReported: boolean
  isDifferent: boolean
}

/**
 * Who is there. Each node tells the others at intervals that it is alive, and what it has of each shared table. When its
 * lease ends, or it says good-bye, it is gone, and with it what it shared. No lease ends while this node is cut off.
 */
export class Nodes {
  readonly channel: NodeChannel
  readonly #context: NodesContext
  readonly #now: () => number
  readonly #deadlines: Deadlines
  readonly #peers = new Map<string, Peer>()
  readonly #tables = new Map<string, NodeTable>()
  readonly #handlers = new Map<string, TopicHandler>()
  /** Topics whose messages arrive, or will. */
  readonly #topics = new Map<string, { readonly bound: Promise<void>; isBound: boolean }>()
  readonly #begun = deferred()
  readonly #goneListeners: ((node: string) => void)[] = []
  readonly #looks = new Set<() => void>()
  /** Nodes that get a lease of their own, because they asked. */
  readonly #askers = new Set<string>()
  #state: 'idle' | 'open' | 'stopped' = 'idle'
  #isUp = false
  #hasBroker = false
  #isJoining = false
  #isGreeted = false
  #isLeaseDue = false
  #isAsking = false
  #isScheduled = false
  #droppedCount = 0

  constructor(context: NodesContext) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
    const { node, broker, maxPayloadBytes, logger } = context
    const onError = (err: unknown, text: string) => logger.warn({ err }, text)
    this.#deadlines = new Deadlines({ now: this.#now, onError: (err) => onError(err, 'a deadline of nodes failed') })
    this.channel = new NodeChannel({
      node,
      broker,
      maxPayloadBytes,
      onMessage: (message) => this.#handle(message),
      onFormat: (peer, format) => this.#tellOnce(peer, { format, ownFormat: NODE_FORMAT }),
      onError: (err, text) => logger.debug({ err }, text),
    })
  }

  /** Whether there can be other nodes. */
  get hasOthers(): boolean {
    return this.#context.broker.capabilities.manyNodes
  }

  /** Whether messages to other nodes pass at present. */
  get isUp(): boolean {
    return this.#isUp && this.#state === 'open'
  }

  /** Whether the other nodes have had time to answer. */
  get isGreeted(): boolean {
    return this.#isGreeted || !this.hasOthers
  }

  /** Names of the other nodes. */
  peers(): string[] {
    return [...this.#peers.keys()]
  }

  /** Adds a table, which takes part once it is opened. */
  add(table: NodeTable): void {
    this.#tables.set(table.name, table)
  }

  /** Takes messages about a topic, those to this node alone unless the topic is opened. */
  handle(topic: string, handler: TopicHandler): void {
    this.#handlers.set(topic, handler)
  }

  /** Calls a function with every node that is gone, or does not answer. */
  onGone(listener: (node: string) => void): void {
    this.#goneListeners.push(listener)
  }

  /** Messages of a topic to all nodes arrive once it resolves. */
  openTopic(topic: string): Promise<void> {
    const known = this.#topics.get(topic)
    if (known !== undefined) return known.bound
    const bound = this.#begun.promise.then(async () => {
      if (this.hasOthers) await this.channel.bind(topic)
      opened.isBound = true
    })
    const opened = { bound, isBound: false }
    this.#topics.set(topic, opened)
    if (this.#hasBroker) void this.#join()
    return bound
  }

  /** Begins to take part in a table: idempotent. */
  openTable(table: NodeTable): Promise<void> {
    if (this.#topics.has(table.name)) return this.openTopic(table.name)
    return this.openTopic(table.name).then(() => {
      table.restart()
      // The other nodes answer with what they have.
      this.lease(true)
      this.#look()
    })
  }

  /** Whether messages about a table arrive. */
  isOpen({ name }: NodeTable): boolean {
    return this.hasOthers && this.#topics.get(name)?.isBound === true
  }

  /**
   * The broker has started. Resolves when this node has what the others share, at the latest after `waitMs` with the
   * broker. Without a topic it does nothing until one is opened.
   */
  async begin(): Promise<void> {
    this.#hasBroker = true
    if (this.#topics.size > 0) await this.#join()
  }

  /** The broker's status changed. Other nodes are silent while the broker is away; what they share stays meanwhile. */
  status(status: BrokerStatus): void {
    const isUp = status === 'up'
    if (isUp === this.#isUp) return
    this.#isUp = isUp
    if (this.#state !== 'open') return
    for (const [node, peer] of this.#peers) this.#renewLease(node, peer, this.#validMs)
    if (isUp) this.gap()
  }

  /** Messages of other nodes may be missing. */
  gap(): void {
    if (this.#state !== 'open') return
    this.lease(true)
    for (const table of this.#tables.values()) table.restart()
  }

  /** Takes a message on a reserved key; returns whether it is one of these. Never calls the broker from within this call. */
  receive(message: Pick<InboundMessage, 'key' | 'payload'>): boolean {
    return this.channel.receive(message)
  }

  /** Tells all nodes soon that this node is alive. @param asks Every other node answers with a lease. */
  lease(asks = false): void {
    this.#isLeaseDue = true
    this.#isAsking ||= asks
    this.#schedule()
  }

  /** A node does not answer: it is gone until its next message. */
  drop(node: string): void {
    this.#remove(node, false)
  }

  /** Resolves when the condition holds, after the time, or when the node stops. Looks after each message of a node. */
  until(condition: () => boolean, timeoutMs = this.#context.waitMs ?? WAIT_MS): Promise<void> {
    if (condition() || this.#state === 'stopped') return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        this.#deadlines.clear(deadline)
        this.#looks.delete(look)
        resolve()
      }
      const look = () => {
        if (condition() || this.#state === 'stopped') end()
      }
      const deadline = this.#deadlines.set(this.#now() + timeoutMs, end)
      this.#looks.add(look)
    })
  }

  /** A message could not be published; other nodes notice it by themselves. */
  report(err: unknown, topic: string): void {
    this.#context.logger.debug({ err, topic }, 'a message to other nodes could not be published')
  }

  stats(): NodesStats {
    let differentCount = 0
    for (const { isDifferent } of this.#peers.values()) if (isDifferent) differentCount++
    return {
      peerCount: this.#peers.size,
      differentCount,
      droppedCount: this.#droppedCount + this.channel.malformedCount,
    }
  }

  /** The node stops. Its last changes go out, and a good-bye: the broker stops next. */
  stop(): void {
    if (this.#state === 'open') {
      for (const table of this.#tables.values()) table.stop()
      if (this.#isUp) this.channel.send(TOPIC, 'bye', '{}').catch((error: unknown) => this.report(error, TOPIC))
    }
    this.#state = 'stopped'
    this.#deadlines.stop()
    this.channel.close()
    this.#look()
  }

  async #join(): Promise<void> {
    if (!this.hasOthers || this.#isJoining) return
    this.#isJoining = true
    await this.channel.open()
    this.#begun.resolve()
    await Promise.all([this.openTopic(TOPIC), ...Array.from(this.#topics.values(), ({ bound }) => bound)])
    if (this.#state !== 'idle') return
    this.#state = 'open'
    this.lease(true)
    this.#renew()
    this.#deadlines.set(this.#now() + GREETING_MS, () => {
      this.#isGreeted = true
      this.#look()
    })
    await this.until(() => this.#peers.size > 0, GREETING_MS)
    await this.until(() => this.#isComplete)
    for (const [node, { hasReported }] of [...this.#peers]) if (!hasReported) this.drop(node)
  }

  get #validMs(): number {
    return Math.floor(this.#context.ttlMs * VALID_SHARE)
  }

  get #isComplete(): boolean {
    for (const { hasReported } of this.#peers.values()) if (!hasReported) return false
    for (const table of this.#tables.values()) if (this.isOpen(table) && !table.isComplete) return false
    return true
  }

  #renew(): void {
    if (this.#state !== 'open') return
    this.lease()
    for (const table of this.#tables.values()) table.retry?.()
    this.#deadlines.set(this.#now() + this.#context.ttlMs * LEASE_SHARE, () => this.#renew())
  }

  /** Later: the sink of a broker must not call it. */
  #schedule(): void {
    if (this.#isScheduled || this.#state !== 'open') return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.isUp) this.#sendLeases()
    })
  }

  #sendLeases(): void {
    const { version, fingerprint } = this.#context
    const open = [...this.#tables.values()].filter((table) => this.isOpen(table))
    const marks = Object.fromEntries(open.map(({ name, mark }) => [name, mark]))
    const lease = { version, options: fingerprint, validMs: this.#validMs, marks }
    if (this.#isLeaseDue) this.channel.tell(TOPIC, 'lease', { ...lease, asks: this.#isAsking })
    // Who asks may be new, and learns of the others.
    for (const asker of this.#askers) this.channel.tell(TOPIC, 'lease', { ...lease, peers: this.peers() }, asker)
    this.#isLeaseDue = this.#isAsking = false
    this.#askers.clear()
  }

  #handle(message: NodeMessage): void {
    if (this.#state === 'stopped' || !this.#receive(message)) this.#droppedCount++
    this.#look()
  }

  #receive(message: NodeMessage): boolean {
    const { node, topic, kind } = message
    if (topic === TOPIC && kind === 'bye') {
      this.#remove(node, true)
      return true
    }
    const peer = this.#peerOf(node)
    if (peer === undefined) return false
    if (topic === TOPIC) return kind === 'lease' && this.#takeLease(peer, message)
    const table = this.#tables.get(topic)
    if (table !== undefined) return !this.isOpen(table) || table.receive(message)
    return this.#handlers.get(topic)?.(message) === true
  }

  #takeLease(peer: Peer, { node, fields }: NodeMessage): boolean {
    const { version, options, validMs, asks, marks, peers = [] } = fields
    const others = listOf(peers, MAX_PEERS, (name) => (typeof name === 'string' && isId(name) ? name : undefined))
    if (!isCount(validMs) || others === undefined || typeof marks !== 'object' || marks === null) return false
    const isGreeting = asks === true || fields.peers !== undefined || !peer.hasReported
    peer.hasReported = true
    this.#renewLease(node, peer, Math.min(validMs, MAX_VALID_MS))
    peer.isDifferent = version !== this.#context.version || options !== this.#context.fingerprint
    if (peer.isDifferent) this.#tellOnce(node, { version, hasOtherOptions: options !== this.#context.fingerprint })
    for (const other of others) this.#peerOf(other)
    for (const table of this.#tables.values()) {
      if (this.isOpen(table)) table.compare(node, (marks as Fields)[table.name], isGreeting)
    }
    if (asks === true) {
      this.#askers.add(node)
      this.#schedule()
    }
    return true
  }

  #peerOf(node: string): Peer | undefined {
    const known = this.#peers.get(node)
    if (known !== undefined || node === this.#context.node) return known
    if (this.#peers.size >= MAX_PEERS) return undefined
    const peer: Peer = { expiry: undefined, hasReported: false, isDifferent: false }
    this.#peers.set(node, peer)
    this.#renewLease(node, peer, this.#validMs)
    return peer
  }

  #renewLease(node: string, peer: Peer, validMs: number): void {
    if (peer.expiry !== undefined) this.#deadlines.clear(peer.expiry)
    peer.expiry = undefined
    if (!this.#isUp && this.#state === 'open') return
    const atMs = this.#now() + validMs
    peer.expiry = this.#deadlines.set(atMs, () => this.#expire(node, peer, atMs))
  }

  #expire(node: string, peer: Peer, atMs: number): void {
    const leaseIntervalMs = this.#context.ttlMs * LEASE_SHARE
    // The deadline is late: leases may have arrived that were not read yet, so no node expires now.
    if (this.#now() - atMs > leaseIntervalMs) this.#renewLease(node, peer, leaseIntervalMs)
    else this.#remove(node, false)
    this.#look()
  }

  #remove(node: string, hasLeft: boolean): void {
    const peer = this.#peers.get(node)
    if (peer === undefined) return
    if (peer.expiry !== undefined) this.#deadlines.clear(peer.expiry)
    this.#peers.delete(node)
    this.#told.delete(node)
    this.channel.forget(node)
    for (const table of this.#tables.values()) table.left(node, hasLeft)
    for (const listener of this.#goneListeners) listener(node)
  }

  /** Nodes whose difference was logged. */
  readonly #told = new Set<string>()

  #tellOnce(node: string, fields: object): void {
    if (this.#told.has(node) || this.#told.size >= MAX_PEERS) return
    this.#told.add(node)
    this.#context.logger.warn({ peer: node, ...fields }, 'another node has other options, or is of another version')
  }

  #look(): void {
    for (const look of [...this.#looks]) look()
  }
}
