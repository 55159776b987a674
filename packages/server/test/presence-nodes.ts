import type { PresenceMember } from 'webmq-client/protocol'
import { Nodes } from '../src/features/nodes/index.js'
import type { ConnectionPresence, PresenceLimits } from '../src/features/presence/connection.js'
import { Presence } from '../src/features/presence/presence.js'
import type { BrokerStatus, InboundMessage } from '../src/kernel/ports/broker.js'
import type { ConnectionId, GroupId } from '../src/kernel/ports/transport.js'
import type { BrokerHub, HubBroker } from './broker-hub.js'

const LIMITS: PresenceLimits = {
  presenceMaxDataBytes: 4_096,
  presenceMaxMembersPerKey: 1_000,
  maxOutboxBytes: 1_048_576,
  presenceMaxKeysPerConnection: 128,
  presenceMaxMembersPerUser: 1000,
  presenceMaxMembers: 100_000,
  presenceMaxBytes: 268_435_456,
}

/** @param address Without one, as behind a proxy. */
export const clientOf = (userId?: string, address = '') => ({ userId, address })

export const TTL_MS = 15_000
export const LINGER_MS = 5_000

/** Options of a {@link PresenceNode}. */
export interface PresenceNodeOptions {
  readonly limits?: Partial<PresenceLimits>
  readonly maxPayloadBytes?: number
  readonly ttlMs?: number
}

/** An event that a watcher received: `+id`, `~id` or `-id`. */
export type Told = string

/** A watcher that knows only the events that a client would get. */
export class Watcher {
  readonly told: Told[] = []
  readonly members = new Map<string, PresenceMember>()

  take(text: string): void {
    const {
      enter = [],
      update = [],
      leave = [],
    } = JSON.parse(text.slice(text.indexOf('\n'))) as {
      enter?: PresenceMember[]
      update?: PresenceMember[]
      leave?: string[]
    }
    for (const member of enter) this.#set('+', member)
    for (const member of update) this.#set('~', member)
    for (const id of leave) {
      this.told.push(`-${id}`)
      this.members.delete(id)
    }
  }

  #set(sign: string, member: PresenceMember): void {
    this.told.push(`${sign}${member.id}`)
    this.members.set(member.id, member)
  }
}

/** The presence of one node, with connections without sockets. */
export class PresenceNode {
  readonly broker: HubBroker
  readonly nodes: Nodes
  readonly presence: Presence
  readonly #groups = new Map<GroupId, Set<ConnectionId>>()
  readonly #watchers = new Map<ConnectionId, Watcher>()
  #connectionCount = 0

  constructor(
    name: string,
    hub: BrokerHub,
    { limits, maxPayloadBytes = 262_144, ttlMs = TTL_MS }: PresenceNodeOptions = {},
  ) {
    this.broker = hub.createBroker()
    const logger = { debug: () => undefined, warn: () => undefined }
    this.nodes = new Nodes({
      node: name,
      version: '1',
      fingerprint: '',
      broker: this.broker,
      maxPayloadBytes,
      ttlMs,
      logger,
      now: Date.now,
    })
    this.presence = new Presence({
      node: name,
      nodes: this.nodes,
      transport: {
        join: (connection, group) => {
          this.#groups.set(group, (this.#groups.get(group) ?? new Set()).add(connection))
        },
        leave: (connection, group) => {
          this.#groups.get(group)?.delete(connection)
        },
        multicast: (groups, frame) => {
          for (const group of groups)
            for (const connection of this.#groups.get(group) ?? []) this.#watchers.get(connection)?.take(String(frame))
        },
      },
      limits: { ...LIMITS, ...limits },
      lingerMs: LINGER_MS,
      maxPayloadBytes,
      logger,
      now: Date.now,
    })
    const sink = {
      deliver: (message: InboundMessage) => this.nodes.channel.receive(message),
      gap: () => this.nodes.gap(),
      refused: () => undefined,
      status: (status: BrokerStatus) => this.nodes.status(status),
    }
    void this.broker.start(sink).then(() => this.nodes.begin())
  }

  stop(): void {
    this.presence.stop()
    this.nodes.stop()
  }

  connect(): ConnectionPresence {
    return this.presence.of(++this.#connectionCount as ConnectionId)
  }

  /** A connection that watches a key. */
  async watch(key: string): Promise<Watcher> {
    const watcher = new Watcher()
    const own = this.connect()
    this.#watchers.set(this.#connectionCount as ConnectionId, watcher)
    await this.presence.whenComplete()
    own.watch(key, () => {
      for (const { id, ...rest } of this.membersOf(key)) watcher.members.set(id, { id, ...rest })
    })
    return watcher
  }

  membersOf(key: string): PresenceMember[] {
    return (JSON.parse(this.presence.members.encodedOf(key).toString()) as PresenceMember[]).sort((a, b) =>
      a.id < b.id ? -1 : 1,
    )
  }

  /** The data of the present members. */
  dataOf(key: string): unknown[] {
    return this.membersOf(key)
      .map(({ data }) => data)
      .sort()
  }
}
