import { createHash } from 'node:crypto'
import type { GapReason } from 'webmq-client/protocol'
import type { Position, ReadRange, ReadResult } from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { hasHistory } from '../log/history-log.js'
import { FRAME } from './frames.js'
import { RULES_CHARS } from './hello.js'
import { formatJointEpoch, type JointPlace, parseJointPlace } from './joint-place.js'
import { KeyWriter } from './key-codec.js'
import { LogCopy, type LogEntry } from './log-copy.js'
import {
  decodeHoldings,
  decodeNumbers,
  decodeTrace,
  decodeWants,
  encodeHoldings,
  encodeTrace,
  encodeWants,
  type Holding,
  pairsOf,
  type ToldTrace,
} from './log-frames.js'
import type { Origin } from './origins.js'
import type { Peer } from './peer.js'
import { PeerLog } from './peer-log.js'
import type { Trace } from './trace.js'
import { type Seen, Traces } from './traces.js'

/** What the history of a node works with. */
export interface MeshHistoryContext {
  /** Id of this life of the node: the epoch of its positions. */
  readonly node: string
  readonly options: HistoryOptions
  /** Messages whose ids are kept. */
  readonly maxIds: number
  /** There is something to send to a peer. */
  dirty(peer: Peer): void
  /** There is something to tell all peers at the end of the turn. */
  wake(): void
  /** Logged messages may be missing, of any pattern. */
  gap(reason: 'history-expired' | 'broker-lost'): void
}

/** How long the messages of a node that is cut off may come later, before it is told that they may be missing. */
export const ABSENCE_MS = 10_000
/** For which a client waits that comes from a node that is ahead of this one: longer than a link may take to come back. */
const MAX_WAIT_MS = 3_000
/** After a start, links that both sides make at once may come a moment later than it was waited for, and with them what is known of other nodes. */
const SETTLING_MS = 1_000
/** How often it is looked for all who wait: there may be thousands, after the end of a node. */
const LOOK_INTERVAL_MS = 5

/** Where a client stands. */
interface Stand {
  readonly seen: Seen
  /** What has to be said beside a place in this node's log. */
  readonly bases: readonly Position[]
}

interface Waiting {
  readonly isSo: () => boolean
  readonly done: () => void
  readonly untilMs: number
}

/**
 * What the nodes of a mesh do so that each has the whole log. Each follows all others, and catches up when a link is made: from one
 * peer after the other it takes what it lacks, from the first one the past of all nodes, in the order of that one.
 */
export class MeshHistory {
  readonly #context: MeshHistoryContext
  readonly #copy: LogCopy
  readonly #keys = new KeyWriter()
  readonly #traces: Traces
  readonly #peers = new Set<Peer>()
  /** Those that log other keys. */
  readonly #others = new Set<Peer>()
  /** Peers that have something this node lacks, in turn; the first is being asked. */
  readonly #sources: Peer[] = []
  #asked: Peer | undefined
  #trace: Trace
  #live: readonly Peer[] = []
  /** Nodes that were cut off, and when. */
  readonly #absent = new Map<string, number>()
  readonly #waiting = new Set<Waiting>()
  #looking: NodeJS.Timeout | undefined
  /** When clients may have begun to listen, Unix time in milliseconds. */
  #upAtMs = Number.POSITIVE_INFINITY
  /** Clients have come from other nodes: what was logged before this one was up, and comes later, they have missed. */
  #hasGuests = false

  constructor(context: MeshHistoryContext) {
    this.#context = context
    this.#copy = new LogCopy(context.node, context.options, context.maxIds)
    this.#traces = new Traces(this.#copy.origins)
    this.#trace = this.#traces.start(context.node, 0, new Map())
    this.#copy.origins.onNew = (origin) => this.#tellAll(FRAME.have, encodeHoldings([holdingOf(origin)], false))
  }

  get position(): Position {
    return this.#copy.log.position
  }

  /** Who is to have a logged message as it is accepted: all peers that follow, and those that log other keys and listen. */
  receiversOf(listening: readonly Peer[]): readonly Peer[] {
    if (this.#others.size === 0) return this.#live
    return [...this.#live, ...listening.filter((peer) => this.#others.has(peer))]
  }

  logs(key: string): boolean {
    return this.#copy.log.logs(key)
  }

  covers(pattern: string): boolean {
    return this.#copy.log.covers(pattern)
  }

  /**
   * Resolves when this node has what its peers had, or after 3 s: clients that came before would be given what is older behind what is
   * newer.
   */
  async caughtUp(): Promise<void> {
    if (!this.#isCaughtUp()) await this.#until(() => this.#isCaughtUp())
  }

  /** Clients come from now on: what was logged before, they have not missed. */
  up(): void {
    this.#flushTrace()
    this.#upAtMs = Date.now()
    const { startOffset, start, runs } = this.#copy.retrace()
    this.#trace = this.#traces.start(this.#context.node, startOffset, start)
    this.#trace.push(runs, (index) => index)
    this.#tellAll(FRAME.traceStart, encodeTrace(0, this.#trace))
  }

  /** Logs a message that this node accepts. */
  append(entry: LogEntry): { readonly sequence: number; readonly position: Position } {
    if (this.#peers.size > 0) this.#context.wake()
    return this.#copy.append(entry)
  }

  /**
   * Logs a message that a peer has sent.
   * @param ageMs `undefined` when it was just accepted.
   * @param original The position of a message with the same id, if there was one; `'none'` otherwise.
   * @returns Its position, and whether it is for those who listen; `undefined` when it has come before.
   */
  take(
    { history }: Peer,
    { origin: index, sequence, ageMs }: { origin: number; sequence: number; ageMs: number | undefined },
    entry: LogEntry,
    original: Position | undefined | 'none',
  ): { readonly position: Position; readonly isWanted: boolean } | undefined {
    const origin = history?.origins.get(index)
    if (origin === undefined || sequence <= origin.known) return undefined
    // A node's own messages come without holes but those it tells of.
    const nowMs = Date.now()
    if (ageMs === undefined && sequence > origin.known + 1) this.#lose(origin, sequence - 1, nowMs)
    this.#context.wake()
    if (original !== 'none') {
      this.#copy.leaveOut(origin, sequence, original)
      return undefined
    }
    const timeMs = nowMs - (ageMs ?? 0)
    const position = this.#copy.take(origin, sequence, entry, timeMs)
    return { position, isWanted: ageMs === undefined || timeMs >= this.#upAtMs || this.#hasGuests }
  }

  /** As {@link Broker.read}; at once, unless `since` is of a node that is ahead of this one. */
  read(range: ReadRange, patterns: readonly string[]): ReadResult | Promise<ReadResult> {
    const { since } = range
    if (this.#others.size > 0) return { gap: 'no-history', ...this.#copy.read(range, patterns) }
    if (since === undefined || since.epoch === this.#context.node) return this.#copy.read(range, patterns)
    const place = parseJointPlace(since)
    if (!this.#mustWaitFor(place)) return this.#readAfter(place, range, patterns)
    return this.#until(() => !this.#mustWaitFor(place)).then(() => this.#readAfter(place, range, patterns))
  }

  /** Streams with a peer begin: tells it what this node has. */
  begin(peer: Peer): void {
    peer.history = new PeerLog(this.#copy, peer.outbox, this.#keys)
    this.#peers.add(peer)
    this.#copy.origins.of(peer.node)
    this.#flushTrace()
    peer.outbox.add(FRAME.have, encodeHoldings([...this.#copy.origins.all()].map(holdingOf), true))
    peer.outbox.add(FRAME.traceStart, encodeTrace(0, this.#trace))
    for (const [{ index }, trace] of this.#traces.allGone())
      peer.outbox.add(FRAME.traceStart, encodeTrace(index, trace))
  }

  /** @throws {RangeError} when it is none that this version understands. */
  frame(peer: Peer, type: number, body: Buffer): void {
    const { history } = peer
    if (history === undefined) return
    switch (type) {
      case FRAME.have:
        this.#onHave(peer, history, body)
        return
      case FRAME.want:
        for (const { life, after } of decodeWants(body)) history.want(this.#copy.origins.of(life), after)
        this.feed(peer)
        return
      case FRAME.hole: {
        const [index = 0, upTo = 0, ageMs = 0] = decodeNumbers(body)
        const origin = history.origins.get(index)
        if (origin !== undefined && upTo > origin.known) this.#lose(origin, upTo, Date.now() - ageMs)
        return
      }
      case FRAME.leftOut:
        this.#onLeftOut(history, decodeNumbers(body))
        return
      case FRAME.fed:
        this.#onFed(peer, history, decodeNumbers(body))
        return
      case FRAME.traceStart:
        this.#onTrace(peer, history, decodeTrace(body))
        return
      case FRAME.trace:
        history.trace?.push(body, history.indexOf)
        return
    }
  }

  /** The peer may have taken in what was read for it. */
  feed(peer: Peer): void {
    const wasLive = peer.history?.isLive
    if (peer.history?.feed(Date.now()) !== true) return
    this.#context.dirty(peer)
    if (wasLive !== peer.history.isLive) this.#changeLive()
  }

  /** A node was linked that logs other keys: it does not share its log. */
  beginOther(peer: Peer): void {
    this.#others.add(peer)
  }

  /** The streams with a peer are at an end. @param isLeaving It has said goodbye. */
  end(peer: Peer, isLeaving: boolean): void {
    if (this.#others.delete(peer)) this.#copy.noteHole(Date.now())
    if (!this.#peers.delete(peer)) return
    const nowMs = performance.now()
    this.#traces.gone(peer.node, nowMs)
    const hasAll = isLeaving && peer.history?.isFed === true
    if (!hasAll && !this.#absent.has(peer.node)) this.#absent.set(peer.node, nowMs)
    this.#changeLive()
    const at = this.#sources.indexOf(peer)
    if (at >= 0) this.#sources.splice(at, 1)
    if (this.#asked === peer) {
      this.#asked = undefined
      this.#ask()
    }
    // Another node may have more of its messages, or less.
    const origin = this.#copy.origins.find(peer.node)
    if (origin !== undefined) this.#tellAll(FRAME.have, encodeHoldings([holdingOf(origin)], false))
  }

  /** Tells all peers what was logged since the last turn. */
  turnEnds(): void {
    this.#flushTrace()
  }

  tick(nowMs: number): void {
    this.#traces.forget(nowMs)
    let isGap = false
    for (const [life, sinceMs] of this.#absent) {
      if (nowMs - sinceMs < ABSENCE_MS) continue
      this.#absent.delete(life)
      isGap = true
    }
    if (!isGap) return
    this.#copy.noteHole(Date.now())
    this.#context.gap('broker-lost')
  }

  /** Nobody waits any more. */
  stop(): void {
    for (const { done } of this.#waiting) done()
  }

  #onHave(peer: Peer, history: PeerLog, body: Buffer): void {
    const { isFirst, holdings } = decodeHoldings(body)
    const more: Origin[] = []
    for (const { index, life, known, lost } of holdings) {
      const origin = this.#copy.origins.of(life)
      history.origins.set(index, origin)
      if (known > lost) history.holdings.set(origin, known)
      const isPeers = life === peer.node || origin === this.#copy.origins.own
      if (!isFirst && !isPeers && known < origin.known && origin.lost < origin.known && !this.#isFedBy(life)) {
        more.push(origin)
      }
    }
    if (more.length > 0) {
      peer.outbox.add(FRAME.have, encodeHoldings(more.map(holdingOf), false))
      this.#context.dirty(peer)
    }
    if (this.#wantsOf(peer).length > 0 && !this.#sources.includes(peer)) this.#sources.push(peer)
    this.#ask()
  }

  #onLeftOut({ origins }: PeerLog, numbers: readonly number[]): void {
    for (let at = 0; at + 3 < numbers.length; at += 4) {
      const [index = 0, sequence = 0, originalIndex = 0, originalSequence = 0] = numbers.slice(at, at + 4)
      const origin = origins.get(index)
      const original = origins.get(originalIndex)
      if (origin === undefined || original === undefined) continue
      this.#copy.noteDuplicate({ origin, sequence, original, originalSequence })
    }
  }

  #onTrace({ node }: Peer, history: PeerLog, { index, startOffset, endOffset, start, runs }: ToldTrace): void {
    const { indexOf } = history
    const vector = new Map(start.map(([index, sequence]) => [indexOf(index), sequence]))
    const life = history.origins.get(index)?.life
    if (life === undefined || life === this.#context.node) return
    if (life === node) {
      history.trace = this.#traces.start(life, startOffset, vector)
      history.trace.push(runs, indexOf)
    } else this.#traces.startGone(life, startOffset, endOffset, vector, performance.now())?.push(runs, indexOf)
  }

  #onFed(peer: Peer, history: PeerLog, numbers: readonly number[]): void {
    for (const [index, upTo] of pairsOf(numbers)) {
      const origin = history.origins.get(index)
      if (origin === undefined) continue
      // What is beyond the last message was left out there too, for the sake of its id.
      if (upTo > origin.known) this.#copy.leaveOut(origin, upTo, undefined)
      if (origin.life !== peer.node) continue
      history.isFed = true
      this.#absent.delete(peer.node)
    }
    if (this.#asked === peer) this.#asked = undefined
    this.#ask()
  }

  /** Asks the next peer, when none is being asked. */
  #ask(): void {
    while (this.#asked === undefined) {
      const peer = this.#sources.shift()
      if (peer === undefined) return
      const wants = this.#wantsOf(peer)
      if (wants.length === 0) continue
      this.#asked = peer
      peer.outbox.add(FRAME.want, encodeWants(wants.map(({ life, known }) => ({ life, after: known }))))
      this.#context.dirty(peer)
    }
  }

  /** What a peer has that does not come from its origin. */
  #wantsOf({ node, history }: Peer): Origin[] {
    if (history === undefined) return []
    const wanted = [...history.holdings]
      .filter(([origin, known]) => known > origin.known && origin.life !== node && !this.#isFedBy(origin.life))
      .map(([origin]) => origin)
    return history.isFed ? wanted : [this.#copy.origins.of(node), ...wanted]
  }

  #isFedBy(life: string): boolean {
    if (life === this.#context.node) return true
    for (const { node, history, link } of this.#peers) {
      if (node === life) return history?.isFed === true && link !== undefined
    }
    return false
  }

  #lose(origin: Origin, upTo: number, timeMs: number): void {
    const isHole = timeMs >= this.#upAtMs
    this.#copy.lose(origin, upTo, timeMs, isHole)
    if (isHole) this.#context.gap('history-expired')
  }

  #readAfter(place: JointPlace, range: ReadRange, patterns: readonly string[]): ReadResult {
    const { log } = this.#copy
    const stand = this.#standOf(place)
    if (typeof stand === 'string') {
      return { ...log.read(range, patterns), gap: stand === 'beyond' ? 'epoch-changed' : stand }
    }
    const { seen, bases } = stand
    this.#hasGuests = true
    const epoch = formatJointEpoch(this.#context.node, bases)
    const from = place.epoch === this.#context.node ? place.offset : undefined
    const result = log.read(range, patterns, this.#copy.continuationOf(seen, from, epoch ?? this.#context.node))
    if (epoch === undefined) return { gap: 'limit', ...result }
    // What this node lacks of what the client has seen may still come, and would come twice.
    return this.#copy.hasTaken(seen) ? result : { gap: 'broker-lost', ...result }
  }

  /** Whether a client has seen what this node has not, and will. */
  #mustWaitFor(place: JointPlace): boolean {
    const stand = this.#standOf(place)
    return stand === 'beyond' || (typeof stand !== 'string' && !this.#copy.hasTaken(stand.seen))
  }

  /** What a client has seen that stands at a place, and by which places beside this node's own log that can be said. */
  #standOf({ epoch, offset, bases }: JointPlace): Stand | 'beyond' | GapReason {
    this.#flushTrace()
    const seen = new Map<Origin, number>()
    const needed: Position[] = []
    const isOwn = epoch === this.#context.node
    for (const place of isOwn ? bases : [{ epoch, offset }, ...bases]) {
      const life = this.#traces.lifeOf(place.epoch)
      if (life === undefined) return Date.now() - this.#upAtMs < SETTLING_MS ? 'beyond' : 'epoch-changed'
      const more = this.#traces.seenAt({ epoch: life, offset: place.offset })
      if (more === 'beyond') return this.#isPeer(life) ? 'beyond' : 'epoch-changed'
      if (typeof more === 'string') return more
      let isNeeded = false
      for (const [origin, sequence] of more) {
        if (sequence <= (seen.get(origin) ?? 0)) continue
        seen.set(origin, sequence)
        isNeeded = true
      }
      if (isNeeded) needed.push({ epoch: life, offset: place.offset })
    }
    return { seen, bases: needed }
  }

  #isCaughtUp(): boolean {
    if (this.#asked !== undefined || this.#sources.length > 0) return false
    for (const { history } of this.#peers) if (history?.isFed !== true) return false
    return true
  }

  #isPeer(life: string): boolean {
    for (const { node } of this.#peers) if (node === life) return true
    return false
  }

  /** Resolves when it is so, or the time is over. */
  #until(isSo: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(waiting)
        if (this.#waiting.size === 0) {
          clearInterval(this.#looking)
          this.#looking = undefined
        }
        resolve()
      }
      const waiting = { isSo, done, untilMs: performance.now() + MAX_WAIT_MS }
      this.#waiting.add(waiting)
      this.#looking ??= setInterval(() => this.#look(), LOOK_INTERVAL_MS)
    })
  }

  #look(): void {
    const nowMs = performance.now()
    for (const { isSo, done, untilMs } of this.#waiting) if (nowMs >= untilMs || isSo()) done()
  }

  #flushTrace(): void {
    const runs = this.#copy.untold.take()
    if (runs.length === 0) return
    this.#trace.push(runs, (index) => index)
    this.#tellAll(FRAME.trace, runs)
  }

  #tellAll(type: number, body: Uint8Array): void {
    for (const peer of this.#peers) {
      peer.outbox.add(type, body)
      this.#context.dirty(peer)
    }
  }

  #changeLive(): void {
    this.#live = [...this.#peers].filter(({ history }) => history?.isLive === true)
  }
}

/** What stands for the keys that are logged: nodes with others do not share their logs. */
export function rulesOf(options: HistoryOptions): string {
  if (!hasHistory(options)) return '-'.repeat(RULES_CHARS)
  return createHash('sha256').update(options.history.patterns.join('\n')).digest('base64').slice(0, RULES_CHARS)
}

function holdingOf({ index, life, known, lost }: Origin): Holding {
  return { index, life, known, lost }
}
