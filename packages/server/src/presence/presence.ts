import { Deadlines } from '../deadlines.js'
import type { Logger } from '../logger.js'
import type { Broker, BrokerStatus, InboundMessage } from '../ports/broker.js'
import type { ConnectionId, Transport } from '../ports/transport.js'
import { Announcer, PRESENCE_KEY } from './announcer.js'
import { Attendance, type AttendanceContext, type PresenceLimits } from './attendance.js'
import { Audience } from './audience.js'
import type { Member } from './member.js'
import { decodeNodeMessage, type NodeMessage } from './node-message.js'
import { OwnMembers } from './own-members.js'
import { Peers } from './peers.js'
import { addressOf, type Entry, Roster } from './roster.js'

/** What {@link Presence} works with. */
export interface PresenceContext {
  /** Name of this node, as long as it lives: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly node: string
  readonly broker: Pick<Broker, 'capabilities' | 'bind' | 'publish'>
  readonly transport: Pick<Transport, 'join' | 'leave' | 'multicast'>
  readonly limits: PresenceLimits
  /** Within which the members of a node that has crashed are gone everywhere. */
  readonly ttlMs: number
  readonly lingerMs: number
  /** Largest message that other nodes take. */
  readonly maxPayloadBytes: number
  readonly log: Pick<Logger, 'debug' | 'warn'>
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
}

/** Counters since the start; gauges at the moment of the call. */
export interface PresenceStats {
  /** Members that this node knows of, of all nodes. */
  readonly memberCount: number
  /** Of those, members of connections of this node. */
  readonly ownMemberCount: number
  /** Keys that connections of this node watch. */
  readonly watchedKeyCount: number
  /** Other nodes that take part. */
  readonly peerCount: number
  /** Messages of other nodes that were not understood, and members that were too many to be taken. */
  readonly droppedCount: number
}

/** Leases are renewed so often; two may get lost. */
const LEASE_SHARE = 1 / 3
/** What is left of the time is for messages on their way, so that the whole of it is kept. */
const VALID_SHARE = 5 / 6
/** Other nodes answer within this time, if they are well; who asks before does not know them all. */
const GREETING_MS = 250
/** Who asks waits no longer than this, whatever is still missing. */
const MAX_WAIT_MS = 1_000
/** After a bind that has failed. */
const RETRY_MS = 1_000
/** Of one message to other nodes: small enough to be no burden to a broker. */
const MAX_MESSAGE_BYTES = 65_536
/** Nodes refuse members beyond the limit; what all of them have taken at the same time may be more, up to this. */
const OVERSHOOT = 2

/**
 * Who is present, on all nodes. Each node decides about the members of its own connections and tells the others; each has a copy of what
 * all hold, so that questions are answered here. A node on which nobody has used presence yet takes no part, and costs nothing.
 */
export class Presence {
  readonly #context: PresenceContext
  readonly #now: () => number
  readonly #deadlines: Deadlines
  readonly #roster: Roster
  readonly #announcer: Announcer
  readonly #own: OwnMembers
  readonly #peers: Peers
  readonly #audience: Audience
  readonly #attendance: AttendanceContext
  readonly #waiting = new Set<() => void>()
  #status: BrokerStatus = 'down'
  /** `idle` until presence is used; `open` once the other nodes are heard. */
  #state: 'idle' | 'binding' | 'open' | 'stopped' = 'idle'
  #isGreeted = false
  #boundCount = 0
  #droppedCount = 0

  constructor(context: PresenceContext) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
    const { node, broker, transport, limits, ttlMs, lingerMs, maxPayloadBytes, log } = context
    const now = this.#now
    const deadlines = new Deadlines({ now, onError: (err) => log.warn({ err }, 'a deadline of presence failed') })
    this.#deadlines = deadlines
    const audience = new Audience({ transport, find: (key, id) => this.#roster.find(key, id) })
    const roster = new Roster((key, id, before) => audience.changed(key, id, before))
    const announcer = new Announcer({
      node,
      roster,
      broker,
      maxMessageBytes: Math.min(MAX_MESSAGE_BYTES, maxPayloadBytes),
      validMs: Math.floor(ttlMs * VALID_SHARE),
      onError: (err) => log.debug({ err }, 'presence could not be published; the others will ask for it'),
    })
    this.#own = new OwnMembers({ node, roster, announcer, deadlines, now, lingerMs })
    this.#peers = new Peers({
      roster,
      deadlines,
      now,
      validMs: ttlMs * VALID_SHARE,
      leaseIntervalMs: ttlMs * LEASE_SHARE,
      take: (entry) => this.#take(entry),
      depart: (peer, { key, id, stamp }) => {
        roster.remove(peer, key, id)
        if (stamp === 0) return
        this.#own.leftElsewhere(key, id, stamp)
        roster.removeBefore(key, id, stamp)
      },
      want: (peer, round) => announcer.want(peer, round),
      onComplete: () => this.#checkComplete(),
    })
    this.#audience = audience
    this.#roster = roster
    this.#announcer = announcer
    this.#attendance = { transport, roster, own: this.#own, audience, limits, begin: () => this.begin() }
  }

  /** What a connection has to do with presence, made when it first has. */
  attend(connection: ConnectionId): Attendance {
    return new Attendance(connection, this.#attendance)
  }

  /** Who is present at a key, as far as this node knows now. */
  members(key: string): readonly Member[] {
    return this.#roster.members(key)
  }

  /** The same as a JSON array, as clients get it. */
  membersJson(key: string): string {
    return `[${this.members(key)
      .map(({ json }) => json)
      .join()}]`
  }

  /** Takes part from now on; no-op afterwards. */
  begin(): void {
    if (this.#state !== 'idle' || !this.#context.broker.capabilities.manyNodes) return
    this.#state = 'binding'
    void this.#bind()
  }

  /**
   * Resolves when this node knows what the other nodes hold, or after a second, whatever is missing: that comes as changes. Absent when it
   * does now.
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

  /** A message on a reserved key; returns whether it concerns presence. Calls the broker back later, if at all. */
  receive({ key, payload }: Pick<InboundMessage, 'key' | 'payload'>): boolean {
    if (this.#state !== 'open' || !key.startsWith(PRESENCE_KEY)) return false
    const message = decodeNodeMessage(payload)
    if (message === undefined) this.#droppedCount++
    else if (message.node !== this.#context.node) this.#handle(message)
    return true
  }

  #handle(message: NodeMessage): void {
    const { node } = message
    if (message.kind === 'want') this.#announcer.answer(node, message.round)
    else {
      this.#peers.receive(message)
      if (message.kind === 'lease' && message.asks) this.#announcer.greet(node)
    }
  }

  /** The broker has said how it is. While it is away nothing is heard of others, which says nothing about them. */
  status(status: BrokerStatus): void {
    this.#status = status
    if (this.#state !== 'open') return
    if (status === 'up') this.#resume()
    else {
      this.#announcer.close()
      this.#peers.freeze()
    }
  }

  /** Messages of others may have been missed. */
  gap(): void {
    if (this.#state === 'open') this.#announcer.lease(true)
  }

  stats(): PresenceStats {
    return {
      memberCount: this.#roster.entryCount,
      ownMemberCount: this.#own.size,
      watchedKeyCount: this.#audience.keyCount,
      peerCount: this.#peers.size,
      droppedCount: this.#droppedCount + this.#peers.unknownCount,
    }
  }

  /** The node stops, its connections are gone: what they held may come back elsewhere, as after any lost connection. */
  stop(): void {
    if (this.#state === 'open') this.#announcer.farewell(this.#context.lingerMs)
    this.#state = 'stopped'
    this.#announcer.close()
    this.#audience.stop()
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
    const { node, broker, log } = this.#context
    const keys = [PRESENCE_KEY, `${PRESENCE_KEY}.${node}`]
    while (this.#state === 'binding' && this.#boundCount < keys.length) {
      try {
        await broker.bind(keys[this.#boundCount] as string)
        this.#boundCount++
      } catch (err) {
        log.debug({ err }, 'presence could not be bound, and is tried again')
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
    this.#announcer.open()
    this.#announcer.lease(true)
    this.#peers.thaw()
    if (this.#isGreeted) return
    this.#deadlines.set(this.#now() + GREETING_MS, () => {
      this.#isGreeted = true
      this.#checkComplete()
    })
  }

  #renew(): void {
    this.#announcer.lease()
    this.#peers.retry()
    this.#deadlines.set(this.#now() + this.#context.ttlMs * LEASE_SHARE, () => this.#renew())
  }

  #take(entry: Entry): void {
    const { key, member, node } = entry
    const isFull = this.#roster.entryCount >= this.#context.limits.maxMembers * OVERSHOOT
    if (isFull && !this.#roster.entriesOf(node).has(addressOf(key, member.id))) {
      this.#droppedCount++
      return
    }
    this.#roster.set(entry)
    this.#own.seen(entry)
  }
}
