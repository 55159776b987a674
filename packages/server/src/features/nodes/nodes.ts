import { isId } from 'webmq-client/protocol'
import { AwakeClock } from '../../kernel/base/awake-clock.js'
import { Conditions } from '../../kernel/base/conditions.js'
import { Deadlines } from '../../kernel/base/deadlines.js'
import { deferred } from '../../kernel/base/deferred.js'
import { logPaced } from '../../kernel/base/log-bug.js'
import type { BrokerStatus } from '../../kernel/ports/broker.js'
import { Attention } from './attention.js'
import { Hearing } from './hearing.js'
import { LeaseSender } from './lease-sender.js'
import { LogAgreement, SETTLE_MS } from './log-agreement.js'
import { Meeting } from './meeting.js'
import { NodeChannel } from './node-channel.js'
import { type Fields, isCount, listOf, NODE_FORMAT, type NodeMessage } from './node-message.js'
import type { NodeTable } from './node-table.js'
import type { NodesContext, NodesStats } from './options.js'
import { compareClock, Differences, MAX_PEERS, type Peer, Peers } from './peers.js'

const TOPIC = 'nodes'
const WAIT_MS = 1_000
/** A node serves clients after this time also if the broker has not accepted its question. */
const MEETING_MS = 5_000
const UNMET = 'the broker has not accepted the question who is there: queue groups wait until the other nodes are known'
/** Nodes that name all others to one that starts, the first by name: if all N did, a start would cost N x N names. */
const NAMING_NODES = 8
/** Time for a node that serves clients to answer, before another epoch of the log begins. */
const LOG_WAIT_MS = 2_000

/**
 * Who is there. Each node tells the others at intervals that it is alive, and what it has of each shared table. When its
 * lease ends, or it says good-bye, it is gone, and with it what it shared. No lease ends while this node is cut off.
 */
export class Nodes {
  readonly channel: NodeChannel
  readonly context: NodesContext
  readonly now: () => number
  readonly deadlines: Deadlines
  readonly #clock = new AwakeClock(() => this.#state !== 'stopped')
  /** A clock, in milliseconds, that stands while this process does: what others did meanwhile has not been read. */
  readonly awakeMs: () => number
  readonly attention: Attention
  readonly #peers: Peers
  readonly #conditions = new Conditions()
  readonly #tables = new Map<string, NodeTable>()
  readonly #handlers = new Map<string, (message: NodeMessage) => boolean>()
  readonly #topics = new Map<string, { readonly bound: Promise<void>; isBound: boolean }>()
  readonly #begun = deferred()
  readonly #goneListeners: ((node: string, hasLeft: boolean) => void)[] = []
  readonly #leases: LeaseSender
  readonly #differences: Differences
  readonly #meeting: Meeting
  readonly #log: LogAgreement | undefined
  #state: 'idle' | 'open' | 'stopped' = 'idle'
  readonly #hearing: Hearing
  #hasBroker = false
  #isJoining = false
  /** Clients may be served: other nodes know this one, or cannot be reached. */
  #hasJoined = false
  #droppedCount = 0

  constructor(context: NodesContext) {
    this.context = context
    this.now = context.now ?? (() => performance.now())
    this.awakeMs = context.now ?? (() => this.#clock.at(performance.now()))
    this.#clock.start()
    const { node, broker, maxPayloadBytes, ttlMs, logger } = context
    this.#differences = new Differences(logger)
    const onError = (err: unknown, text: string) => logPaced(logger, 'warn', { err }, text)
    this.deadlines = new Deadlines({ now: this.awakeMs, onError: (err) => onError(err, 'a deadline of nodes failed') })
    const { deadlines } = this
    const gone = (name: string, hasLeft: boolean) => this.#gone(name, hasLeft)
    this.#peers = new Peers({ node, ttlMs, deadlines, isCutOff: () => this.isCutOff, gone })
    this.#hearing = new Hearing({ now: this.awakeMs, intervalMs: this.#peers.leaseIntervalMs })
    this.#meeting = new Meeting({
      until: (condition, timeoutMs) => this.until(condition, timeoutMs),
      look: () => this.#conditions.look(),
      isOpen: () => this.#state === 'open',
      now: () => this.awakeMs(),
      isComplete: () => this.#isComplete,
      removeSilent: () => this.#peers.removeSilent(),
    })
    this.attention = new Attention({ now: this.now, validMs: this.#peers.validMs, changed: () => this.lease() })
    this.channel = new NodeChannel({
      node,
      broker,
      maxPayloadBytes,
      onMessage: (message) => this.#handle(message),
      onEcho: () => {
        // The broker stood still: what it brings now may be old.
        if (this.#hearing.echo()) this.#peers.renewAll()
      },
      onFormat: (peer, format) => this.#differences.tell(peer, { format, ownFormat: NODE_FORMAT }),
      onError: (err, text) => logger.debug({ err }, text),
    })
    this.#leases = new LeaseSender({
      isUp: () => this.isUp,
      names: () => (this.#isNaming ? this.peers() : []),
      lease: () => this.#lease(),
      sendAll: (lease) => this.#sendLease(lease),
      send: (peer, lease) => this.channel.tell(TOPIC, 'lease', lease, peer),
    })
    if (context.log === undefined || !this.hasOthers) return
    this.#log = new LogAgreement(context.log, (call) => this.deadlines.set(this.awakeMs() + SETTLE_MS, call))
    void this.openTopic(TOPIC)
  }

  /** Whether there can be other nodes. */
  get hasOthers(): boolean {
    return this.context.broker.capabilities.manyNodes
  }

  /** Whether messages to other nodes pass at present. */
  get isUp(): boolean {
    return this.#hearing.isUp && this.#state === 'open'
  }

  /** For how long messages of other nodes arrive: 0 while this one is cut off, Infinity if it never was. */
  get hearingMs(): number {
    return this.hasOthers ? this.#hearing.sinceMs : Number.POSITIVE_INFINITY
  }

  get isCutOff(): boolean {
    return this.#state === 'open' && !this.#hearing.isHearing
  }

  /** Whether the other nodes have had time to answer. */
  get isGreeted(): boolean {
    return this.#meeting.isGreeted || !this.hasOthers
  }

  /** Whether this node has known the others, or that there are none, since it started. */
  get hasMet(): boolean {
    return this.#meeting.hasMet || !this.hasOthers
  }

  /** Whether a node that was silent while this one asked who is there may turn up yet. */
  get isNew(): boolean {
    return this.hasOthers && this.awakeMs() < this.#meeting.metMs + this.context.ttlMs
  }

  peers(): string[] {
    return [...this.#peers.byName.keys()]
  }

  /** The last {@link Attention.look term} that another node has told; `undefined`: none, it may be of an older version. */
  termOf(node: string): number | undefined {
    return this.#peers.byName.get(node)?.term
  }

  heardTerm(node: string, term: number): void {
    this.#peers.heardTerm(node, term)
  }

  add(table: NodeTable): void {
    this.#tables.set(table.name, table)
  }

  /**
   * Takes messages about a topic that is no table, those to this node alone unless the topic is opened.
   * @param handler Returns whether the message could be read. MUST NOT call the broker.
   */
  handle(topic: string, handler: (message: NodeMessage) => boolean): void {
    this.#handlers.set(topic, handler)
  }

  /** @param listener `hasLeft`: the node has said so, and did not crash. */
  onGone(listener: (node: string, hasLeft: boolean) => void): void {
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
      this.#conditions.look()
    })
  }

  isOpen({ name }: NodeTable): boolean {
    return this.hasOthers && this.#topics.get(name)?.isBound === true
  }

  /**
   * The broker has started. Resolves when this node has what the others share, or some seconds later. Without a topic it
   * does nothing until one is opened.
   */
  async begin(): Promise<void> {
    this.#hasBroker = true
    if (this.#topics.size > 0) await this.#join()
    const log = this.#log
    if (log !== undefined) {
      await this.until(() => log.isKnown, LOG_WAIT_MS)
      if (this.#state === 'open') await log.settle()
    }
    this.#hasJoined = true
  }

  /** The broker's status changed. Other nodes are silent while the broker is away; what they share stays meanwhile. */
  status(status: BrokerStatus): void {
    const isUp = status === 'up'
    if (!this.#hearing.status(isUp)) return
    this.#meeting.interrupted()
    if (this.#state !== 'open') return
    this.#peers.renewAll()
    if (isUp) this.gap()
  }

  gap(): void {
    if (this.#state !== 'open') return
    this.#meeting.interrupted()
    this.#log?.cutOff(this.#hasJoined)
    this.lease(true)
    for (const table of this.#tables.values()) table.restart()
  }

  /** Tells all nodes soon that this node is alive. @param asks Every other node answers with a lease. */
  lease(asks = false): void {
    this.#leases.toAll(asks)
  }

  /** Asks another node for a lease. */
  ask(node: string): void {
    this.#leases.ask(node)
  }

  /** Resolves when the condition holds, after the time, or when the node stops. Looks after each message of a node. */
  until(condition: () => boolean, timeoutMs = this.context.waitMs ?? WAIT_MS): Promise<void> {
    return this.#conditions.until(condition, timeoutMs)
  }

  /** A message could not be published; other nodes notice it by themselves. */
  readonly report = (err: unknown, topic: string): void =>
    this.context.logger.debug({ err, topic }, 'a message to other nodes could not be published')

  stats(): NodesStats {
    let differentCount = 0
    let clockApartMs = 0
    for (const { isDifferent, clock } of this.#peers.byName.values()) {
      if (isDifferent) differentCount++
      if (clock?.isSure === true) clockApartMs = Math.max(clockApartMs, clock.apartMs)
    }
    return {
      clockApartMs,
      peerCount: this.#peers.byName.size,
      differentCount,
      otherLogCount: this.#log?.differentCount ?? 0,
      droppedCount: this.#droppedCount + this.channel.malformedCount,
    }
  }

  /** The node stops. Its last changes go out, and a good-bye: the broker stops next. */
  stop(): void {
    if (this.#state === 'open') {
      for (const table of this.#tables.values()) table.stop()
      if (this.#hearing.isUp) this.channel.send(TOPIC, 'bye', '{}').catch((error: unknown) => this.report(error, TOPIC))
    }
    this.#state = 'stopped'
    this.deadlines.stop()
    this.attention.stop()
    this.#clock.stop()
    this.channel.close()
    this.#conditions.end()
  }

  async #join(): Promise<void> {
    if (!this.hasOthers || this.#isJoining) return
    this.#isJoining = true
    await this.channel.open()
    this.#begun.resolve()
    await Promise.all([this.openTopic(TOPIC), ...Array.from(this.#topics.values(), ({ bound }) => bound)])
    if (this.#state !== 'idle') return
    this.#state = 'open'
    this.attention.start()
    this.#hearing.begin()
    this.lease(true)
    this.#renew()
    void this.#meeting.begin()
    await this.until(() => this.hasMet, MEETING_MS)
    if (!this.hasMet && this.#state === 'open') this.context.logger.warn({ waitedMs: MEETING_MS }, UNMET)
  }

  get #isNaming(): boolean {
    return this.peers().filter((name) => name < this.context.node).length < NAMING_NODES
  }

  get #isComplete(): boolean {
    for (const { hasReported } of this.#peers.byName.values()) if (!hasReported) return false
    for (const table of this.#tables.values()) if (this.isOpen(table) && !table.isComplete) return false
    return true
  }

  #renew(): void {
    if (this.#state !== 'open') return
    this.lease()
    for (const table of this.#tables.values()) table.retry?.()
    this.deadlines.set(this.awakeMs() + this.#peers.leaseIntervalMs, () => this.#renew())
  }

  /** What a lease says now. */
  #lease(): object {
    const { version, fingerprint: options } = this.context
    const open = [...this.#tables.values()].filter((table) => this.isOpen(table))
    const marks = Object.fromEntries(open.map(({ name, mark }) => [name, mark]))
    const starts = this.#hasJoined ? undefined : { starts: true }
    const term = this.attention.look()
    const timeMs = Date.now()
    return { version, options, ...this.#log?.fields(), ...starts, validMs: this.#peers.validMs, term, timeMs, marks }
  }

  #sendLease(lease: object): void {
    const sentAtMs = this.now()
    const { round } = this.#meeting
    const accepted = () => {
      this.attention.leased(sentAtMs)
      this.#meeting.asked(round)
    }
    this.channel
      .send(TOPIC, 'lease', JSON.stringify(lease))
      .then(accepted, (error: unknown) => this.report(error, TOPIC))
  }

  #handle(message: NodeMessage): void {
    if (this.#state === 'stopped' || !this.#receive(message)) this.#droppedCount++
    this.#conditions.look()
  }

  #receive(message: NodeMessage): boolean {
    const { node, topic, kind } = message
    if (topic === TOPIC && kind === 'bye') {
      this.#peers.remove(node, true)
      return true
    }
    const peer = this.#peers.obtain(node)
    if (peer === undefined) return false
    if (topic === TOPIC) return kind === 'lease' && this.#takeLease(peer, message)
    const table = this.#tables.get(topic)
    if (table !== undefined) return !this.isOpen(table) || table.receive(message)
    return this.#handlers.get(topic)?.(message) === true
  }

  #takeLease(peer: Peer, { node, fields }: NodeMessage): boolean {
    const { version, options, validMs, asks, marks, term, peers = [] } = fields
    const others = listOf(peers, MAX_PEERS, (name) => (typeof name === 'string' && isId(name) ? name : undefined))
    if (!isCount(validMs) || others === undefined || typeof marks !== 'object' || marks === null) return false
    const isGreeting = asks === true || fields.peers !== undefined || !peer.hasReported
    peer.hasReported = true
    this.#peers.renew(node, peer, validMs)
    if (isCount(term)) this.heardTerm(node, term)
    compareClock(peer, fields.timeMs, this.now())
    peer.isDifferent = version !== this.context.version || options !== this.context.fingerprint
    const logsOtherKeys = this.#log?.take(node, fields, this.#hasJoined) === true
    if (peer.isDifferent) {
      const hasOtherOptions = options !== this.context.fingerprint
      this.#differences.tell(node, { version, hasOtherOptions, logsOtherKeys })
    }
    for (const other of others) this.#peers.obtain(other)
    // One that starts too does not know them.
    if (others.length > 0 && fields.starts !== true) this.#meeting.named()
    for (const table of this.#tables.values()) {
      if (this.isOpen(table)) table.compare(node, (marks as Fields)[table.name], isGreeting)
    }
    if (asks === true) this.#leases.to(node)
    return true
  }

  #gone(node: string, hasLeft: boolean): void {
    this.#differences.forget(node)
    this.#log?.gone(node)
    this.channel.forget(node)
    for (const table of this.#tables.values()) table.left(node, hasLeft)
    for (const listener of this.#goneListeners) listener(node, hasLeft)
    this.#conditions.look()
  }
}
