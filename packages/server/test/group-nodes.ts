import { Nodes } from '../src/features/nodes/index.js'
import type { GroupName } from '../src/features/queue-groups/group-message.js'
import {
  type GroupMember,
  type GroupMessage,
  groupIdOf,
  type RequestTicket,
} from '../src/features/queue-groups/group-message.js'
import { GroupedBroker } from '../src/features/queue-groups/grouped-broker.js'
import { QueueGroups } from '../src/features/queue-groups/queue-groups.js'
import type { GroupRequests } from '../src/features/queue-groups/requests.js'
import { PROCESS } from '../src/kernel/identity/actor.js'
import type { Broker, OutboundMessage } from '../src/kernel/ports/broker.js'
import { type Author, requestAuthor, trustedLimits } from '../src/kernel/publishing/author.js'

/** Who asks, unless a test says it. */
export const PROCESS_AUTHOR = requestAuthor(
  PROCESS,
  trustedLimits({ maxWords: 32, maxPayloadBytes: 262_144 }),
  new Map(),
)

/** A message that a member got. */
export interface Taken {
  readonly node: string
  readonly group: string
  readonly text: string
}

/** Options of a {@link GroupNode}. */
export interface GroupNodeOptions {
  readonly answerMs?: number
  readonly waitMs?: number
  readonly ttlMs?: number
  readonly maxPayloadBytes?: number
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** The queue groups of one node, with members without sockets. */
export class GroupNode {
  readonly name: string
  readonly nodes: Nodes
  readonly groups: QueueGroups
  /** The broker, whose publishes are handed to queue groups too. */
  readonly broker: Broker
  readonly #bare: Broker
  readonly members = new Map<TestMember, GroupName>()
  isOver = false

  constructor(
    name: string,
    broker: Broker,
    { answerMs = 500, waitMs = 5_000, ttlMs = 3_000, maxPayloadBytes = 262_144, ...clock }: GroupNodeOptions = {},
  ) {
    this.name = name
    this.#bare = broker
    const logger = { debug: () => undefined, warn: () => undefined, error: () => undefined }
    this.nodes = new Nodes({
      node: name,
      version: '1',
      fingerprint: '',
      broker,
      maxPayloadBytes,
      ttlMs,
      waitMs: Math.min(1_000, answerMs),
      logger,
      ...clock,
    })
    this.groups = new QueueGroups({
      node: name,
      nodes: this.nodes,
      broker,
      maxPayloadBytes,
      maxPendingBytes: 16 * 1_048_576,
      waitMs,
      dedupe: { dedupeWindowMs: 60_000, dedupeMaxIds: 10_000 },
      logger,
      answerMs,
      ...clock,
    })
    this.broker = new GroupedBroker(broker, this.groups)
  }

  async start(): Promise<this> {
    await this.#bare.start({
      deliver: (message) => this.nodes.channel.receive(message),
      status: (status) => this.nodes.status(status),
      gap: () => this.nodes.gap(),
      refused: () => undefined,
    })
    await this.nodes.begin()
    return this
  }

  async join(name: GroupName, take: (text: string, ticket: RequestTicket | undefined) => void): Promise<TestMember> {
    const member = new TestMember((text, ticket) => {
      if (!this.isOver) take(text, ticket)
    })
    this.members.set(member, name)
    await this.groups.join(name, member)
    return member
  }

  /** Joins, and records what the member gets. */
  async record(name: GroupName, taken: Taken[]): Promise<TestMember> {
    return await this.join(name, (text) => taken.push({ node: this.name, group: groupIdOf(name), text }))
  }

  leave(member: TestMember): void {
    const name = this.members.get(member)
    if (name !== undefined) this.groups.leave(name, member)
    this.members.delete(member)
  }

  async publish(key: string, text: string, more: Partial<OutboundMessage> = {}): Promise<void> {
    await this.broker.publish({ key, payload: Buffer.from(text), isBinary: false, ...more })
  }

  /** Asks as the process does, or as somebody else. */
  ask(message: GroupMessage, withinMs: number, asker: Author = PROCESS_AUTHOR): ReturnType<GroupRequests['ask']> {
    return this.groups.requests.ask(message, withinMs, asker)
  }

  /** Ends without a word to the others. */
  async crash(): Promise<void> {
    this.isOver = true
    const stopped = this.#bare.stop(0)
    await stopped
    this.groups.stop()
    this.nodes.stop()
  }

  async stop(): Promise<void> {
    if (this.isOver) return
    for (const member of [...this.members.keys()]) this.leave(member)
    this.groups.stop()
    this.nodes.stop()
    await this.#bare.stop()
    this.isOver = true
  }
}

/** A member that never lags, unless told to. */
export class TestMember implements GroupMember {
  isLagging = false
  /** Whether it takes no more. */
  isFull = false
  readonly #take: (text: string, ticket: RequestTicket | undefined) => void

  constructor(take: (text: string, ticket: RequestTicket | undefined) => void) {
    this.#take = take
  }

  take(_name: GroupName, { payload }: GroupMessage, ticket: RequestTicket | undefined): boolean {
    if (this.isFull) return false
    this.#take(Buffer.from(payload).toString(), ticket)
    return true
  }
}
