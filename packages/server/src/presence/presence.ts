import { Deadlines } from '../deadlines.js'
import type { Logger } from '../logger.js'
import type { Broker, BrokerStatus, InboundMessage } from '../ports/broker.js'
import type { ConnectionId, Transport } from '../ports/transport.js'
import { ConnectionPresence, type ConnectionPresenceContext, type PresenceLimits } from './connection.js'
import { LocalMembers } from './local-members.js'
import type { Member } from './member.js'
import { addressOf, type Entry, Members } from './members.js'
import { decodeNodeMessage, type NodeMessage } from './node-message.js'
import { Peers } from './peers.js'
import { PRESENCE_KEY, PresenceSync } from './sync.js'
import { Watchers } from './watchers.js'

/** What {@link Presence} works with. */
export interface PresenceContext {
  /** Name of this node, new with every start: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly node: string
  readonly broker: Pick<Broker, 'capabilities' | 'bind' | 'publish'>
  readonly transport: Pick<Transport, 'join' | 'leave' | 'multicast'>
  readonly limits: PresenceLimits
  /** When a node crashes, its members are gone everywhere within this time. */
  readonly ttlMs: number
  /** Time that a member stays after its connection was lost. */
  readonly lingerMs: number
  /** Largest message that other nodes accept. */
  readonly maxPayloadBytes: number
  readonly logger: Pick<Logger, 'debug' | 'warn'>
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** Counters since the start; gauges at the time of the call. */
export interface PresenceStats {
  /** Members of all nodes that this node knows. */
  readonly memberCount: number
  /** Members of this node's own connections; `memberCount` includes them. */
  readonly ownMemberCount: number
  /** Keys that this node's connections watch. */
  readonly watchedKeyCount: number
  /** Other nodes that take part in presence. */
  readonly peerCount: number
  /** Messages of other nodes that could not be read, and members above the limit. */
  readonly droppedCount: number
}

/** Share of the time to live after which a lease is renewed, so that two renewals may get lost. */
const LEASE_SHARE = 1 / 3
/** Share of the time to live for which a lease is valid. The rest covers the delay of messages. */
const VALID_SHARE = 5 / 6
/** Healthy nodes answer within this time. Before that, this node may not know all of them. */
const GREETING_MS = 250
/** Clients that ask for members wait no longer than this, even when answers of nodes are missing. */
const MAX_WAIT_MS = 1_000
/** Delay after a failed bind. */
const RETRY_MS = 1_000
/** Largest message to other nodes, so that presence does not burden the broker. */
const MAX_MESSAGE_BYTES = 65_536
/** Each node refuses members above the limit. Several nodes may accept members at once, so up to this factor is kept. */
const OVERSHOOT = 2

/**
 * Knows who is present, on all nodes. Each node decides about the members of its own connections and tells the other
 * nodes. Each node keeps a copy of all members, so it answers clients by itself. A node takes part, and costs something,
 * only once one of its clients has used presence.
 */
export class Presence {
  readonly #context: PresenceContext
  readonly #now: () => number
  readonly #deadlines: Deadlines
  readonly #members: Members
  readonly #sync: PresenceSync
  readonly #localMembers: LocalMembers
  readonly #peers: Peers
  readonly #watchers: Watchers
  readonly #connectionContext: ConnectionPresenceContext
  readonly #waiting = new Set<() => void>()
  #status: BrokerStatus = 'down'
  /** `idle` until presence is used; `open` once messages of other nodes arrive. */
  #state: 'idle' | 'binding' | 'open' | 'stopped' = 'idle'
  /** Whether the other nodes have had time to answer. */
  #isGreeted = false
  #boundCount = 0
  #droppedCount = 0

  constructor(context: PresenceContext) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
    const { node, broker, transport, limits, ttlMs, lingerMs, maxPayloadBytes, logger } = context
    const now = this.#now
    const deadlines = new Deadlines({ now, onError: (err) => logger.warn({ err }, 'a deadline of presence failed') })
    this.#deadlines = deadlines
    const watchers = new Watchers({ transport, now, find: (key, id) => this.#members.find(key, id) })
    const members = new Members((key, id, before) => watchers.changed(key, id, before))
    const sync = new PresenceSync({
      node,
      members,
      broker,
      maxMessageBytes: Math.min(MAX_MESSAGE_BYTES, maxPayloadBytes),
      validMs: Math.floor(ttlMs * VALID_SHARE),
      onError: (err) => logger.debug({ err }, 'presence could not be published; other nodes will ask for it'),
    })
    this.#localMembers = new LocalMembers({ node, members, sync, deadlines, now, lingerMs })
    this.#peers = new Peers({
      members,
      deadlines,
      now,
      validMs: ttlMs * VALID_SHARE,
      leaseIntervalMs: ttlMs * LEASE_SHARE,
      take: (entry) => this.#take(entry),
      depart: (peer, { key, id, stamp }) => {
        members.remove(peer, key, id)
        if (stamp === 0) return
        this.#localMembers.leftElsewhere(key, id, stamp)
        members.removeBefore(key, id, stamp)
      },
      want: (peer, round) => sync.want(peer, round),
      onComplete: () => this.#checkComplete(),
    })
    this.#watchers = watchers
    this.#members = members
    this.#sync = sync
    const begin = () => this.begin()
    this.#connectionContext = { transport, members, localMembers: this.#localMembers, watchers, limits, begin }
  }

  /** Creates the presence of one connection. */
  of(connection: ConnectionId): ConnectionPresence {
    return new ConnectionPresence(connection, this.#connectionContext)
  }

  /** The members of a key that this node knows now. */
  members(key: string): readonly Member[] {
    return this.#members.of(key)
  }

  /** The same as a JSON array, in the form that clients get. */
  membersJson(key: string): string {
    return this.#members.encodedOf(key).toString()
  }

  /** The same, encoded as UTF-8. Read-only. */
  encodedMembers(key: string): Uint8Array {
    return this.#members.encodedOf(key)
  }

  /** Begins to take part; a no-op after the first call. */
  begin(): void {
    if (this.#state !== 'idle' || !this.#context.broker.capabilities.manyNodes) return
    this.#state = 'binding'
    void this.#bind()
  }

  /**
   * Resolves when this node knows the members of the other nodes, at the latest after a second. Later members then come
   * as changes. `undefined` means that it knows them now.
   */
  whenComplete(): Promise<void> | undefined {
    this.begin()
    if (this.#isComplete) return undefined
    return new Promise((resolve) => {
      const done = () => {
        this.#deadlines.clear(deadline)
        this.#waiting.delete(done)
        resolve()
      }
      const deadline = this.#deadlines.set(this.#now() + MAX_WAIT_MS, done)
      this.#waiting.add(done)
    })
  }

  /** Takes a message on a reserved key; returns whether it concerns presence. Never calls the broker from within this call. */
  receive({ key, payload }: Pick<InboundMessage, 'key' | 'payload'>): boolean {
    if (this.#state !== 'open' || !key.startsWith(PRESENCE_KEY)) return false
    const message = decodeNodeMessage(payload)
    if (message === undefined) this.#droppedCount++
    else if (message.node !== this.#context.node) this.#handle(message)
    return true
  }

  #handle(message: NodeMessage): void {
    const { node } = message
    if (message.kind === 'want') this.#sync.serve(node, message.round)
    else {
      this.#peers.receive(message)
      if (message.kind === 'lease' && message.asks) this.#sync.leaseTo(node)
    }
  }

  /** The broker's status changed. Other nodes are silent while the broker is away; their members stay meanwhile. */
  status(status: BrokerStatus): void {
    this.#status = status
    if (this.#state !== 'open') return
    if (status === 'up') this.#resume()
    else {
      this.#sync.close()
      this.#peers.freeze()
    }
  }

  /** Messages of other nodes may be missing. */
  gap(): void {
    if (this.#state === 'open') this.#sync.lease(true)
  }

  stats(): PresenceStats {
    return {
      memberCount: this.#members.entryCount,
      ownMemberCount: this.#localMembers.size,
      watchedKeyCount: this.#watchers.keyCount,
      peerCount: this.#peers.size,
      droppedCount: this.#droppedCount + this.#peers.unknownCount,
    }
  }

  /** The node stops. Its members linger, as after any lost connection, because clients may reconnect to other nodes. */
  stop(): void {
    if (this.#state === 'open') this.#sync.farewell(this.#context.lingerMs)
    this.#state = 'stopped'
    this.#sync.close()
    this.#watchers.stop()
    this.#deadlines.stop()
    for (const done of [...this.#waiting]) done()
  }

  get #isComplete(): boolean {
    const isAlone = !this.#context.broker.capabilities.manyNodes || this.#state === 'stopped'
    return isAlone || (this.#isGreeted && this.#peers.isComplete)
  }

  #checkComplete(): void {
    if (this.#waiting.size > 0 && this.#isComplete) for (const done of [...this.#waiting]) done()
  }

  async #bind(): Promise<void> {
    const { node, broker, logger } = this.#context
    const keys = [PRESENCE_KEY, `${PRESENCE_KEY}.${node}`]
    while (this.#state === 'binding' && this.#boundCount < keys.length) {
      try {
        await broker.bind(keys[this.#boundCount] as string)
        this.#boundCount++
      } catch (err) {
        logger.debug({ err }, 'presence could not be bound; it is tried again')
        await new Promise<void>((resolve) => this.#deadlines.set(this.#now() + RETRY_MS, resolve))
      }
    }
    if (this.#state !== 'binding') return
    this.#state = 'open'
    if (this.#status === 'up') this.#resume()
    else this.#peers.freeze()
    this.#renew()
  }

  #resume(): void {
    this.#sync.open()
    this.#sync.lease(true)
    this.#peers.thaw()
    if (this.#isGreeted) return
    this.#deadlines.set(this.#now() + GREETING_MS, () => {
      this.#isGreeted = true
      this.#checkComplete()
    })
  }

  #renew(): void {
    this.#sync.lease()
    this.#peers.retry()
    this.#deadlines.set(this.#now() + this.#context.ttlMs * LEASE_SHARE, () => this.#renew())
  }

  #take(entry: Entry): void {
    const { key, member, node } = entry
    const { maxMembers, maxBytes } = this.#context.limits
    const isFull =
      this.#members.entryCount >= maxMembers * OVERSHOOT ||
      this.#members.byteLength + member.byteLength > maxBytes * OVERSHOOT
    // The new data of a known member are always taken: without them, nodes would not agree.
    if (isFull && !this.#members.entriesOf(node).has(addressOf(key, member.id))) {
      this.#droppedCount++
      return
    }
    this.#members.set(entry)
    this.#localMembers.seen(entry)
  }
}
