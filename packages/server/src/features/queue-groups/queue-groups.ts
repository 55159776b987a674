import { refusalOf, WebMQError } from 'webmq-client/protocol'
import { Deadlines } from '../../kernel/base/deadlines.js'
import { logPaced } from '../../kernel/base/log-bug.js'
import { LogPace } from '../../kernel/base/log-pace.js'
import type { Logger } from '../../kernel/base/logger.js'
import type { MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { Broker } from '../../kernel/ports/broker.js'
import type { DedupeOptions } from '../../kernel/ports/dedupe-window.js'
import { type Nodes, SharedTable } from '../nodes/index.js'
import { ClientGroups } from './client-groups.js'
import { EarlyMessages } from './early-messages.js'
import { type GroupMember, type GroupMessage, type GroupName, groupIdOf } from './group-message.js'
import { HandOvers } from './hand-over.js'
import { type GroupChange, KnownGroups } from './known-groups.js'
import { OwnMembers } from './own-members.js'
import { GroupRequests } from './requests.js'
import { type TaskMessage, taskFields, taskMessageFrom } from './task-message.js'

export interface QueueGroupsContext {
  /** Name of this node, new with every start: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly node: string
  readonly nodes: Nodes
  readonly broker: Pick<Broker, 'capabilities'>
  readonly maxPayloadBytes: number
  /** Memory of messages that wait for the answers of other nodes. */
  readonly maxPendingBytes: number
  /** How long a publish waits for a node that does not answer. */
  readonly waitMs: number
  /** How long, and how many, message ids are remembered. */
  readonly dedupe: DedupeOptions
  /** What members get instead of a message; `undefined`: nothing. Default: the message. */
  readonly delivered?: (message: GroupMessage) => GroupMessage | undefined
  readonly logger: Pick<Logger, 'debug' | 'warn' | 'error'>
  /** A node that has not answered within this time is silent: it gets nothing until it is heard again. Default 2,000. */
  readonly answerMs?: number
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** Counters since the start; gauges at the time of the call. */
export interface QueueGroupStats {
  /** Queue groups of all nodes that this node knows, those of responders included. */
  readonly groupCount: number
  readonly memberCount: number
  readonly peerCount: number
  /** Messages and requests that members of this node have got. */
  readonly handedCount: number
  /** Messages that no member got: none was there any more, or the hook `deliver` failed on this node. */
  readonly missedCount: number
  /** Messages and requests whose sender was told to try again: no node with members answered in time, or they were too many. */
  readonly failedCount: number
  /** Messages that wait for the answers of other nodes, and their memory. */
  readonly pendingCount: number
  readonly pendingBytes: number
  /** Those of them whose node is silent. */
  readonly waitingCount: number
  /** Requests of this node that wait for a reply. */
  readonly requestCount: number
  /** Queue groups of other nodes above the limit. */
  readonly droppedCount: number
}

/** What a {@link QueueGroupsContext} leaves out. */
const DEFAULTS = {
  answerMs: 2_000,
  now: () => performance.now(),
  delivered: (message: GroupMessage): GroupMessage | undefined => message,
}
const TOPIC = 'tasks'
const LOG_INTERVAL_MS = 60_000
const SILENCE_TEXT = 'a node with members of queue groups does not answer: their messages wait, or go to others'
/** Largest message to other nodes about members. */
const MAX_MESSAGE_BYTES = 65_536
/** A message between nodes has a header of up to a kilobyte, in parts that are no larger than a payload may be. */
const MIN_PAYLOAD_BYTES = 1_024

/**
 * Hands each message to one member of each queue group, and each request to one responder, over all nodes.
 *
 * Each node knows which nodes have members of which groups, by a {@link SharedTable}. The node that publishes picks one, in
 * proportion to their members ({@link HandOvers}), and that node picks a member. A publish is acknowledged once a member of
 * each group has its message. Without a member, a group misses the message.
 */
export class QueueGroups {
  readonly isSupported: boolean
  readonly context: QueueGroupsContext & typeof DEFAULTS
  readonly known = new KnownGroups()
  readonly ofClients = new ClientGroups()
  readonly deadlines: Deadlines
  readonly ownMembers: OwnMembers
  readonly handOvers: HandOvers
  readonly requests: GroupRequests
  readonly early: EarlyMessages
  readonly #table: SharedTable<GroupChange>
  readonly #silencePace = new LogPace(LOG_INTERVAL_MS)
  #memberCount = 0

  constructor(context: QueueGroupsContext) {
    this.context = { ...DEFAULTS, ...context }
    const { nodes, broker, maxPayloadBytes, now, dedupe, delivered } = this.context
    const { queueGroups, manyNodes } = broker.capabilities
    this.isSupported = queueGroups && (!manyNodes || maxPayloadBytes >= MIN_PAYLOAD_BYTES)
    const onError = (err: unknown) => this.report(err, 'a deadline of queue groups failed')
    this.deadlines = new Deadlines({ now: context.now ?? nodes.awakeMs, onError })
    this.#table = new SharedTable(nodes, this.known, {
      name: 'groups',
      maxMessageBytes: Math.min(MAX_MESSAGE_BYTES, maxPayloadBytes),
      batchMs: 0,
      isConfirmed: true,
    })
    this.ownMembers = new OwnMembers({
      dedupe,
      now,
      delivered,
      known: this.known.byId,
      term: () => nodes.attention.look(),
      send: (message, to) => {
        this.send(message, to).catch((error) => this.report(error, 'a hand-over could not be confirmed'))
      },
      ticketFor: (member, node, asked) => this.requests.ticketFor(member, node, asked),
      forget: (ticketId) => this.requests.forget(ticketId),
      report: (err, text) => this.report(err, text),
    })
    this.handOvers = new HandOvers(this)
    this.known.onMembers = (group, node) => this.handOvers.joined(group, node)
    this.known.onHeard = (node) => this.handOvers.heard(node)
    this.requests = new GroupRequests(this)
    this.early = new EarlyMessages({
      isNew: () => nodes.isNew,
      ttlMs: nodes.context.ttlMs,
      deadlines: this.deadlines,
      known: this.known,
      handOver: (group, message) => this.handOvers.handOver(group, message),
      report: (err, text) => this.report(err, text),
    })
    this.known.onCopied = (node) => this.early.giveTo(node)
    nodes.onGone((node, hasLeft) => {
      this.handOvers.gone(node, hasLeft)
      this.requests.gone(node)
    })
    nodes.handle(TOPIC, (received) => {
      const { node } = received
      const message = taskMessageFrom(received)
      if (message === undefined) return false
      this.#table.heard(node)
      if (message.kind === 'reply') this.requests.receive(message, node)
      else if (message.kind === 'task') this.ownMembers.receive(message, node)
      else this.handOvers.receive(message, node)
      return true
    })
    if (this.isSupported && manyNodes) void this.#table.open()
  }

  /**
   * Adds a member. All nodes know it when this returns or resolves.
   * @throws {WebMQError} `E_UNSUPPORTED`, `E_LISTEN_LIMIT`, `E_BROKER_UNAVAILABLE`; it is then not a member.
   */
  join(name: GroupName, member: GroupMember): MaybePromise<void> {
    this.assertSupported()
    const { byId } = this.known
    const { client } = member
    if (client !== undefined) this.ofClients.assertRoom(client, name, byId.has(groupIdOf(name)) ? 0 : byId.size)
    const group = this.known.obtain(name)
    if (client !== undefined) this.ofClients.add(client, name)
    group.members.push(member)
    this.#memberCount++
    this.handOvers.joined(group, this.context.node)
    if (!this.context.broker.capabilities.manyNodes) return
    this.#table.changed(group.id)
    return this.#table.whenKnown().catch((error: unknown) => {
      this.leave(name, member)
      throw error
    })
  }

  /** Removes a member. It gets nothing after the call. */
  leave(name: GroupName, member: GroupMember): void {
    const group = this.known.byId.get(groupIdOf(name))
    const index = group?.members.indexOf(member) ?? -1
    if (group === undefined || index < 0) return
    group.members.splice(index, 1)
    if (member.client !== undefined) this.ofClients.remove(member.client, name)
    this.#memberCount--
    this.#table.changed(group.id)
    this.known.prune(group)
  }

  /** @throws {WebMQError} `E_UNSUPPORTED` */
  assertSupported(): void {
    if (this.isSupported) return
    const { queueGroups } = this.context.broker.capabilities
    const detail = queueGroups ? `queue groups need a maxPayloadBytes of ${MIN_PAYLOAD_BYTES}` : 'queue groups'
    throw refusalOf('E_UNSUPPORTED', { detail })
  }

  /**
   * Sends to another node. Resolves once the broker has accepted it. The payload is copied before it returns.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`
   */
  async send(message: TaskMessage, to: string): Promise<void> {
    const payload = 'payload' in message ? message.payload : undefined
    await this.context.nodes.channel.send(TOPIC, message.kind, taskFields(message), to, payload)
  }

  /** A node does not answer: it gets nothing until it is heard again. Its members stay until it is gone. */
  suspect(node: string): void {
    const others = this.isSilent(node) ? undefined : this.#silencePace.take()
    if (others !== undefined) this.context.logger.warn({ peer: node, others }, SILENCE_TEXT)
    this.#table.distrust(node)
    this.context.nodes.ask(node)
    this.handOvers.silent(node)
  }

  /** Whether this node has heard which queue groups the others have, since it started. */
  get isKnown(): boolean {
    return !this.isSupported || this.context.nodes.hasMet
  }

  isSilent(node: string): boolean {
    return this.#table.isSilent(node)
  }

  /** Whether this node knows the members of all others, as far as it knows. */
  get isCurrent(): boolean {
    return this.#table.isCurrent
  }

  whenCurrent(): Promise<void> {
    return this.#table.whenCurrent()
  }

  get silentCount(): number {
    return this.#table.silentCount
  }

  report(err: unknown, text: string): void {
    logPaced(this.context.logger, 'warn', { err }, text)
  }

  stats(): QueueGroupStats {
    const handOvers = this.handOvers.stats()
    return {
      groupCount: this.known.byId.size,
      memberCount: this.#memberCount,
      peerCount: this.context.nodes.stats().peerCount,
      handedCount: this.ownMembers.handedCount,
      ...handOvers,
      missedCount: handOvers.missedCount + this.ownMembers.failedCount,
      requestCount: this.requests.waitingCount,
      droppedCount: this.known.droppedCount,
    }
  }

  stop(): void {
    this.ownMembers.stop()
    this.handOvers.stop(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the server stops' }))
    this.requests.stop()
    this.early.clear()
    this.deadlines.stop()
  }
}
