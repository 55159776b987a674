import type { PresenceMember } from 'webmq-client/protocol'
import { Deadlines } from '../../kernel/base/deadlines.js'
import { logPaced } from '../../kernel/base/log-bug.js'
import type { Logger } from '../../kernel/base/logger.js'
import { andThen, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { ConnectionId, Transport } from '../../kernel/ports/transport.js'
import { type Nodes, SharedTable } from '../nodes/index.js'
import { ConnectionPresence, type PresenceLimits, type SharedPresence } from './connection.js'
import { LocalMembers } from './local-members.js'
import { departureText, entryText, type MemberChange, memberChangeFrom } from './member-text.js'
import { addressOf, type Entry, Members, partsOf } from './members.js'
import { BATCH_MS, Watchers } from './watchers.js'

export interface PresenceContext {
  /** Name of this node, new with every start: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly node: string
  readonly nodes: Nodes
  readonly transport: Pick<Transport, 'join' | 'leave' | 'multicast'>
  readonly limits: PresenceLimits
  readonly lingerMs: number
  readonly maxPayloadBytes: number
  readonly logger: Pick<Logger, 'warn'>
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
  readonly peerCount: number
  /** Members of other nodes above the limit. */
  readonly droppedCount: number
}

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
  readonly members: Members
  readonly #context: PresenceContext
  readonly #deadlines: Deadlines
  readonly #watchers: Watchers
  readonly #localMembers: LocalMembers
  readonly #table: SharedTable<MemberChange>
  readonly #shared: SharedPresence
  readonly #byConnection = new Map<ConnectionId, ConnectionPresence>()
  #isStopped = false
  #droppedCount = 0

  constructor(context: PresenceContext) {
    this.#context = context
    const { node, nodes, transport, limits, lingerMs, maxPayloadBytes, logger } = context
    const now = context.now ?? (() => performance.now())
    const onError = (err: unknown) => logPaced(logger, 'warn', { err }, 'a deadline of presence failed')
    const deadlines = new Deadlines({ now: context.now ?? nodes.awakeMs, onError })
    const watchers = new Watchers({ transport, now, find: (key, id) => members.find(key, id) })
    const members = new Members((key, id, before) => watchers.changed(key, id, before))
    const entries = {
      ids: () => members.entriesOf(node).keys(),
      entryText: (address: string) => {
        const entry = members.entriesOf(node).get(address)
        return entry === undefined ? undefined : entryText(entry)
      },
      removalText: (address: string, stamp: number) => departureText({ ...partsOf(address), stamp }),
      decode: memberChangeFrom,
      apply: (change: MemberChange) => this.#apply(change),
      idsOf: (peer: string) => members.entriesOf(peer).keys(),
      remove: (peer: string, address: string) => {
        const { key, id } = partsOf(address)
        members.remove(peer, key, id)
      },
      // As after any lost connection: clients may reconnect to other nodes.
      removeNode: (peer: string, hasLeft: boolean) => {
        if (hasLeft) deadlines.set(deadlines.now() + lingerMs, () => members.removeNode(peer))
        else members.removeNode(peer)
      },
    }
    this.#table = new SharedTable(nodes, entries, {
      name: 'presence',
      maxMessageBytes: Math.min(MAX_MESSAGE_BYTES, maxPayloadBytes),
      batchMs: BATCH_MS,
      isConfirmed: false,
    })
    const changed = (address: string, stamp?: number) => this.#table.changed(address, stamp)
    const localMembers = new LocalMembers({ node, lingerMs, members, changed, deadlines })
    this.members = members
    this.#deadlines = deadlines
    this.#watchers = watchers
    this.#localMembers = localMembers
    this.#shared = { limits, transport, members, localMembers, watchers, begin: () => this.begin() }
  }

  /** What a connection enters and watches, until it has {@link closed}. */
  of(connection: ConnectionId): ConnectionPresence {
    let own = this.#byConnection.get(connection)
    if (own === undefined) {
      own = new ConnectionPresence(connection, this.#shared)
      this.#byConnection.set(connection, own)
    }
    return own
  }

  /** The same of a connection that has used presence. */
  known(connection: ConnectionId): ConnectionPresence | undefined {
    return this.#byConnection.get(connection)
  }

  /** See {@link ConnectionPresence.close}. */
  closed(connection: ConnectionId, isWanted: boolean): void {
    this.#byConnection.get(connection)?.close(isWanted)
    this.#byConnection.delete(connection)
  }

  /** The members of a key on all nodes, once this node knows those of the others. */
  list(key: string): MaybePromise<readonly PresenceMember[]> {
    return andThen(this.whenComplete(), () => JSON.parse(this.members.encodedOf(key).toString()) as PresenceMember[])
  }

  /** Begins to take part; a no-op after the first call. */
  begin(): void {
    if (this.#context.nodes.hasOthers) void this.#table.open()
  }

  /**
   * Resolves when this node knows the members of the other nodes, at the latest after a second. Later members then come
   * as changes. `undefined` means that it knows them now.
   */
  whenComplete(): Promise<void> | undefined {
    const { nodes } = this.#context
    this.begin()
    const isComplete = () => !nodes.hasOthers || this.#isStopped || this.#isComplete
    return isComplete() ? undefined : nodes.until(isComplete)
  }

  stats(): PresenceStats {
    return {
      memberCount: this.members.entryCount,
      ownMemberCount: this.#localMembers.size,
      watchedKeyCount: this.#watchers.keyCount,
      peerCount: this.#context.nodes.stats().peerCount,
      droppedCount: this.#droppedCount,
    }
  }

  /** The node stops. Its members linger, as after any lost connection, because clients may reconnect to other nodes. */
  stop(): void {
    this.#isStopped = true
    this.#watchers.stop()
    this.#deadlines.stop()
  }

  get #isComplete(): boolean {
    const { nodes } = this.#context
    return nodes.isGreeted && nodes.isOpen(this.#table) && this.#table.isComplete
  }

  #apply({ node, change }: MemberChange): void {
    if ('member' in change) {
      this.#take(change)
      return
    }
    const { key, id, stamp } = change
    this.members.remove(node, key, id)
    if (stamp === 0) return
    this.#localMembers.leftElsewhere(key, id, stamp)
    this.members.removeBefore(key, id, stamp)
  }

  #take(entry: Entry): void {
    const { key, member, node } = entry
    const { presenceMaxMembers: maxMembers, presenceMaxBytes: maxBytes } = this.#context.limits
    const isFull =
      this.members.entryCount >= maxMembers * OVERSHOOT ||
      this.members.byteLength + member.byteLength > maxBytes * OVERSHOOT
    // The new data of a known member are always taken: without them, nodes would not agree.
    if (isFull && !this.members.entriesOf(node).has(addressOf(key, member.id))) {
      this.#droppedCount++
      return
    }
    this.members.set(entry)
    this.#localMembers.seen(entry)
  }
}
