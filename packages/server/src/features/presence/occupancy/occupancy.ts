import { contains } from 'webmq-client/protocol'
import { type Deadline, Deadlines } from '../../../kernel/base/deadlines.js'
import { logPaced } from '../../../kernel/base/log-bug.js'
import { LogPace } from '../../../kernel/base/log-pace.js'
import type { Logger } from '../../../kernel/base/logger.js'
import { type Nodes, SharedTable } from '../../nodes/index.js'
import { covers, type Fact } from './fact.js'
import { ownerOf } from './owner.js'
import { type Say, sayFrom, sayText } from './say.js'
import { Says } from './says.js'
import { Teller } from './teller.js'

export interface OccupancyOptions {
  /** A listen counts when one of these contains its pattern. */
  readonly patterns: readonly string[]
  /** Time without a listener after which a pattern is vacated, so that a reconnect or a deploy is none. */
  readonly graceMs: number
  /** Most patterns that this node's connections listen with, and most of each other node. */
  readonly maxPatterns: number
}

export interface OccupancyContext extends OccupancyOptions {
  /** Name of this node, new with every start. */
  readonly node: string
  readonly nodes: Nodes
  readonly maxPayloadBytes: number
  /** Gives events, each as JSON, to the backend; rejects when it has not taken all of them. */
  readonly tell: (events: readonly string[]) => Promise<void>
  readonly logger: Pick<Logger, 'warn'>
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
  /** Unix time, in milliseconds. */
  readonly time?: () => number
}

/** Counters since the start; gauges at the time of the call. */
export interface OccupancyStats {
  /** Patterns that are occupied, on all nodes, as far as this node knows. */
  readonly occupiedCount: number
  /** Patterns of which this node has to tell the backend something. */
  readonly waitingCount: number
  /** Listens that were not watched: there was no room for their patterns. */
  readonly droppedCount: number
}

/** The fact that the fleet is up. What its `vacated-all` says: of everything before it, nothing is occupied any more. */
const FLEET = ''
/** Largest message to other nodes. */
const MAX_MESSAGE_BYTES = 65_536
/** Changes of this time go out together. */
const BATCH_MS = 25
/** Until a node that takes part for the first time, or anew, has what the others have. */
const UNREADY_MS = 250
/** A look that is so late was not made in time: this process was paused. */
const PAUSE_MS = 1_000
/** A vacated pattern is kept for so long, because the clocks of nodes differ: its next generation must be larger. */
const KEPT_MS = 60_000
const LOG_INTERVAL_MS = 10_000

/**
 * Tells the backend of patterns that are occupied and vacated, over all nodes. Each node tells the others which patterns its
 * connections listen with. One node of all, by rendezvous hashing, owns a pattern: it decides facts about it, shares each with
 * the other nodes before it tells it, and again that it was told. So a node that takes its place repeats at most the last
 * fact, with the same generation.
 */
export class Occupancy {
  readonly #context: OccupancyContext
  readonly #now: () => number
  readonly #time: () => number
  readonly #deadlines: Deadlines
  readonly #table: SharedTable<Say>
  readonly #teller: Teller
  /** Listens of this node's connections, by pattern. */
  readonly #counts = new Map<string, number>()
  /** Listens for whose patterns there was no room when they began. */
  readonly #unwatched = new Map<string, number>()
  /** Facts of the patterns that this node owns, or that their owner does not have yet: those of a node that is gone. */
  readonly #facts = new Map<string, Fact>()
  readonly #says: Says
  readonly #graces = new Map<string, Deadline>()
  /** Patterns to look at. */
  readonly #dirty = new Set<string>()
  #look: Deadline | undefined
  #settledAtMs = 0
  #known: Promise<void> = Promise.resolve()
  #isStopped = false
  #droppedCount = 0
  readonly #pace = new LogPace(LOG_INTERVAL_MS)

  constructor(context: OccupancyContext) {
    const { nodes, maxPayloadBytes, logger, now = () => performance.now(), time = Date.now } = context
    this.#context = context
    // Those that its connections listen with, and as many facts.
    this.#says = new Says(2 * context.maxPatterns)
    this.#now = now
    this.#time = time
    const onError = (err: unknown) => logPaced(logger, 'warn', { err }, 'a deadline of occupancy failed')
    this.#deadlines = new Deadlines({ now: context.now ?? nodes.awakeMs, onError })
    const says = {
      ids: () => new Set([...this.#counts.keys(), ...this.#facts.keys()]),
      entryText: (pattern: string) => {
        const fact = this.#facts.get(pattern)
        const isListened = this.#counts.has(pattern)
        return isListened || fact !== undefined ? sayText(pattern, isListened, fact) : undefined
      },
      removalText: (pattern: string) => sayText(pattern, false, undefined),
      decode: sayFrom,
      apply: (say: Say) => this.#apply(say),
      idsOf: (node: string) => this.#says.patternsOf(node),
      remove: (node: string, id: string) => this.#apply({ id, node, isListened: false, fact: undefined }),
      removeNode: (node: string) => this.#removeNode(node),
      membersChanged: () => this.#lookAtAll(),
      messagesLost: () => {
        this.#settle()
        this.#lookAtAll()
      },
    }
    this.#table = new SharedTable(nodes, says, {
      name: 'occupancy',
      maxMessageBytes: Math.min(MAX_MESSAGE_BYTES, maxPayloadBytes),
      batchMs: BATCH_MS,
      isConfirmed: true,
    })
    this.#teller = new Teller({
      ready: (patterns) => this.#ready(patterns),
      tell: (patterns) => this.#tell(patterns),
      onFailed: (err, waitingCount) => {
        const others = this.#pace.take(1)
        if (others === undefined) return
        logger.warn(
          { err, waitingCount, count: others + 1 },
          'the webhook is not told of occupied and vacated patterns',
        )
      },
    })
    if (nodes.hasOthers) void this.#table.open()
    this.#mark(FLEET)
  }

  /** A connection of this node listens with a pattern. */
  listened(pattern: string): void {
    if (!this.#isWatched(pattern)) return
    const count = this.#counts.get(pattern) ?? 0
    if (count === 0 && this.#counts.size >= this.#context.maxPatterns) {
      this.#droppedCount++
      this.#unwatched.set(pattern, (this.#unwatched.get(pattern) ?? 0) + 1)
      return
    }
    this.#counts.set(pattern, count + 1)
    if (count === 0) this.#changed(pattern)
  }

  /** One connection less listens with it. */
  unlistened(pattern: string): void {
    const unwatched = this.#unwatched.get(pattern)
    if (unwatched !== undefined) {
      if (unwatched > 1) this.#unwatched.set(pattern, unwatched - 1)
      else this.#unwatched.delete(pattern)
      return
    }
    const count = this.#counts.get(pattern)
    if (count === undefined) return
    if (count > 1) {
      this.#counts.set(pattern, count - 1)
      return
    }
    this.#counts.delete(pattern)
    this.#changed(pattern)
  }

  stats(): OccupancyStats {
    const occupied = new Set([...this.#counts.keys(), ...this.#says.listened()])
    return {
      occupiedCount: occupied.size,
      waitingCount: this.#teller.waitingCount,
      droppedCount: this.#droppedCount,
    }
  }

  /** The node stops. Another one tells its waiting facts. */
  stop(): void {
    this.#isStopped = true
    this.#teller.stop()
    this.#deadlines.stop()
  }

  #isWatched(pattern: string): boolean {
    return this.#context.patterns.some((rule) => contains(rule, pattern))
  }

  /** Tells the other nodes, and looks at the pattern. */
  #changed(pattern: string): void {
    this.#share(pattern)
    this.#mark(pattern)
  }

  #share(pattern: string): void {
    if (this.#context.nodes.hasOthers) this.#table.changed(pattern)
  }

  #mark(pattern: string): void {
    this.#dirty.add(pattern)
    this.#schedule(BATCH_MS)
  }

  #schedule(inMs: number): void {
    if (this.#look !== undefined || this.#isStopped) return
    const atMs = this.#now() + inMs
    this.#look = this.#deadlines.set(this.#deadlines.now() + inMs, () => {
      this.#look = undefined
      // This process was paused: others may have taken its place.
      if (this.#now() - atMs > PAUSE_MS) this.#settle()
      this.#lookAtDirty()
    })
  }

  /**
   * This node may lack facts of nodes that are gone: for the others they end within a lease, and these share the facts then.
   * Until then it decides nothing, also when it knows no other node: their answers may be on their way.
   */
  #settle(): void {
    this.#settledAtMs = this.#deadlines.now() + this.#context.nodes.context.ttlMs
  }

  #lookAtAll(): void {
    for (const patterns of [this.#counts.keys(), this.#facts.keys(), this.#says.patterns()]) {
      for (const pattern of patterns) this.#dirty.add(pattern)
    }
    this.#mark(FLEET)
  }

  /** Whether this node knows what the others know. */
  get #isReady(): boolean {
    const { nodes } = this.#context
    if (!nodes.hasOthers) return true
    const isKnown = nodes.isUp && nodes.isGreeted && nodes.isOpen(this.#table) && this.#table.isComplete
    return isKnown && this.#deadlines.now() >= this.#settledAtMs
  }

  #lookAtDirty(): void {
    if (!this.#isReady) {
      this.#schedule(UNREADY_MS)
      return
    }
    const members = [this.#context.node, ...this.#table.members()]
    const patterns = [...this.#dirty]
    this.#dirty.clear()
    for (const pattern of patterns) this.#lookAt(pattern, members)
    if (this.#dirty.size > 0) this.#schedule(UNREADY_MS)
  }

  #lookAt(pattern: string, members: readonly string[]): void {
    const owner = ownerOf(pattern, members)
    if (owner === this.#context.node) this.#own(pattern)
    else this.#handOver(pattern, owner)
  }

  #own(pattern: string): void {
    const fact = this.#newest(pattern)
    if (fact !== undefined) {
      const isToTell = !fact.isReported && !this.#teller.has(pattern)
      if (isToTell || !covers(this.#facts.get(pattern), fact)) this.#set(pattern, fact)
    }
    const isOccupied = pattern === FLEET || this.#isListened(pattern)
    // What is older than a `vacated-all` of a node that took itself for the only one is vacated for the backend.
    const isTold =
      fact?.isOccupied === true && (pattern === FLEET || fact.generation > (this.#newest(FLEET)?.generation ?? 0))
    if (isOccupied === isTold) {
      this.#endGrace(pattern)
      if (!isOccupied && fact?.isReported) this.#forgetLater(pattern, fact)
    } else if (isOccupied) {
      this.#endGrace(pattern)
      this.#decide(pattern, true)
    } else if (!this.#graces.has(pattern)) {
      const end = () => {
        this.#graces.delete(pattern)
        this.#vacate(pattern)
      }
      this.#graces.set(pattern, this.#deadlines.set(this.#deadlines.now() + this.#context.graceMs, end))
    }
  }

  /** The grace has ended. The pattern is looked at again if something has changed. */
  #vacate(pattern: string): void {
    const isOwn = ownerOf(pattern, [this.#context.node, ...this.#table.members()]) === this.#context.node
    if (this.#isReady && isOwn && !this.#isListened(pattern)) this.#decide(pattern, false)
    else this.#mark(pattern)
  }

  #decide(pattern: string, isOccupied: boolean): void {
    const fleet = this.#newest(FLEET)
    if (fleet === undefined && pattern !== FLEET) {
      // Its owner decides it first.
      this.#dirty.add(pattern)
      return
    }
    const last = Math.max(this.#newest(pattern)?.generation ?? 0, fleet?.generation ?? 0)
    this.#set(pattern, { isOccupied, generation: Math.max(this.#time(), last + 1), isReported: false })
  }

  #set(pattern: string, fact: Fact): void {
    this.#facts.set(pattern, fact)
    if (fact.isReported) this.#teller.remove(pattern)
    this.#changed(pattern)
    if (fact.isReported) return
    this.#awaitOthers()
    this.#teller.add(pattern)
  }

  /** Another node owns the pattern. This one keeps the fact until the owner has it. */
  #handOver(pattern: string, owner: string | undefined): void {
    this.#endGrace(pattern)
    this.#teller.remove(pattern)
    const theirs = this.#says.factOf(owner, pattern)
    const own = this.#facts.get(pattern)
    if (own === undefined || !covers(theirs, own)) return
    this.#facts.delete(pattern)
    this.#share(pattern)
  }

  #forgetLater(pattern: string, fact: Fact): void {
    const forget = () => {
      this.#graces.delete(pattern)
      if (this.#facts.get(pattern)?.generation !== fact.generation) return
      this.#facts.delete(pattern)
      this.#share(pattern)
    }
    if (!this.#graces.has(pattern))
      this.#graces.set(pattern, this.#deadlines.set(this.#deadlines.now() + KEPT_MS, forget))
  }

  #endGrace(pattern: string): void {
    const grace = this.#graces.get(pattern)
    if (grace !== undefined) this.#deadlines.clear(grace)
    this.#graces.delete(pattern)
  }

  #isListened(pattern: string): boolean {
    return this.#counts.has(pattern) || this.#says.isListened(pattern)
  }

  #newest(pattern: string): Fact | undefined {
    return this.#says.newest(pattern, this.#facts.get(pattern))
  }

  #apply(say: Say): void {
    if (!this.#says.take(say)) this.#droppedCount++
    if (say.id === FLEET) this.#lookAtAll()
    else this.#mark(say.id)
  }

  #removeNode(node: string): void {
    for (const { id, fact } of this.#says.remove(node)) {
      this.#dirty.add(id)
      // The next owner may not have known the node.
      if (fact === undefined || covers(this.#facts.get(id), fact)) continue
      this.#facts.set(id, fact)
      this.#share(id)
    }
    this.#lookAtAll()
  }

  #awaitOthers(): void {
    if (!this.#context.nodes.hasOthers) return
    this.#known = this.#table.whenKnown({ mayDistrust: false })
    // `ready` tells.
    this.#known.catch(() => undefined)
  }

  async #ready(patterns: readonly string[]): Promise<void> {
    try {
      await this.#known
    } catch (error) {
      // The broker is away: they are shared again.
      for (const pattern of patterns) this.#share(pattern)
      this.#awaitOthers()
      throw error
    }
  }

  async #tell(patterns: readonly string[]): Promise<void> {
    const facts = new Map<string, Fact>()
    for (const pattern of patterns) {
      const fact = this.#facts.get(pattern)
      if (fact !== undefined && !fact.isReported) facts.set(pattern, fact)
      else this.#teller.remove(pattern)
    }
    if (facts.size === 0) return
    await this.#context.tell(Array.from(facts, ([pattern, fact]) => eventOf(pattern, fact)))
    for (const [pattern, fact] of facts) {
      if (this.#facts.get(pattern) === fact) this.#set(pattern, { ...fact, isReported: true })
    }
  }
}

function eventOf(pattern: string, { isOccupied, generation }: Fact): string {
  if (pattern === FLEET) return JSON.stringify({ event: 'vacated-all', generation })
  return JSON.stringify({ event: isOccupied ? 'occupied' : 'vacated', pattern, generation })
}
