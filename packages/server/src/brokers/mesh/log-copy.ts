import type { Position, ReadRange, ReadResult } from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { type Continuation, OrderedLog } from '../log/history-log.js'
import { LogOrder } from './log-order.js'
import { type Origin, Origins } from './origins.js'
import { TraceWriter, type Vector } from './trace.js'

/** A message for the log. */
export interface LogEntry {
  readonly key: string
  /** Copied. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly messageId: string | undefined
}

/** A message that was left out, because one with the same id stands in the log. */
export interface Duplicate {
  readonly origin: Origin
  readonly sequence: number
  /** The other one. */
  readonly original: Origin
  readonly originalSequence: number
}

/** Messages that were left out which are remembered, for clients that come from a node where the other one was. */
const MAX_DUPLICATES = 16_384

/**
 * A node's own log in a mesh: all logged messages of all nodes, in the order in which they came here. Each is known by its origin and
 * its number there, under which every other node has it too; those of one origin stand in their order.
 */
export class LogCopy {
  readonly origins: Origins
  readonly order: LogOrder
  readonly log: OrderedLog
  /** What was logged since the trace was told last. */
  readonly untold = new TraceWriter()
  readonly #now: () => number
  #duplicates: Duplicate[] = []
  /** Place of the last hole: something may be missing right after it. */
  #holeOffset = -1
  #holeTimeMs = 0
  #lostTimeMs = 0

  /**
   * @param maxIds Messages whose ids are kept with them.
   * @param now Unix time in milliseconds.
   */
  constructor(life: string, options: HistoryOptions, maxIds: number, now: () => number = Date.now) {
    this.origins = new Origins(life)
    this.order = new LogOrder(Math.min(maxIds, options.historyMaxMessages))
    this.log = new OrderedLog(options, now)
    this.log.restart(life)
    this.#now = now
  }

  /** Logs a message that this node has accepted. Returns its number and its place. */
  append(entry: LogEntry): { readonly sequence: number; readonly position: Position } {
    const { own } = this.origins
    own.known++
    return { sequence: own.known, position: this.#add(own, own.known, entry, this.#now()) }
  }

  /** Logs a message of another node, the next of those that {@link Origin.known} counts. */
  take(origin: Origin, sequence: number, entry: LogEntry, timeMs: number): Position {
    origin.known = sequence
    return this.#add(origin, sequence, entry, timeMs)
  }

  /** A message of another node has the id of one that is logged, or was. */
  leaveOut(origin: Origin, sequence: number, original: Position | undefined): void {
    origin.known = sequence
    const { order } = this
    if (original === undefined || original.offset <= order.heldAfter) return
    const logged = this.origins.at(order.originAt(original.offset))
    if (logged === undefined) return
    const originalSequence = order.sequenceAt(original.offset)
    this.noteDuplicate({ origin, sequence, original: logged, originalSequence })
  }

  /** A message was left out here, or where what is here comes from. */
  noteDuplicate(duplicate: Duplicate): void {
    if (this.#duplicates.length >= MAX_DUPLICATES) this.#forgetDuplicates()
    this.#duplicates.push(duplicate)
  }

  /** Those that were left out for the sake of messages that the log may still hold. */
  get duplicates(): readonly Duplicate[] {
    return this.#duplicates
  }

  /**
   * Messages of an origin up to this one will not come; they were logged at this time or before.
   * @param isHole Clients of this node may have missed them.
   */
  lose(origin: Origin, upTo: number, timeMs: number, isHole: boolean): void {
    origin.known = upTo
    origin.lost = upTo
    this.#lostTimeMs = Math.max(this.#lostTimeMs, timeMs)
    if (isHole) this.noteHole(timeMs)
  }

  /** The trace of all that the log holds, as if nothing had been lost before that. Cost: O(messages). */
  retrace(): { readonly startOffset: number; readonly start: Vector; readonly runs: Uint8Array } {
    const { order } = this
    const start = new Map<number, number>()
    for (let offset = order.last; offset > order.heldAfter; offset--) {
      start.set(order.originAt(offset), order.sequenceAt(offset) - 1)
    }
    for (const origin of this.origins.all()) {
      if (start.has(origin.index)) continue
      start.set(origin.index, origin.known)
      origin.logged = origin.known
    }
    const last = new Map(start)
    const writer = new TraceWriter()
    for (let offset = order.heldAfter + 1; offset <= order.last; offset++) {
      const origin = order.originAt(offset)
      const sequence = order.sequenceAt(offset)
      writer.note(origin, sequence - (last.get(origin) ?? 0) - 1)
      last.set(origin, sequence)
    }
    return { startOffset: order.heldAfter, start, runs: writer.take() }
  }

  /** Something that was logged at this time or before may be missing here. */
  noteHole(timeMs: number): void {
    this.#holeOffset = this.log.position.offset
    this.#holeTimeMs = Math.max(this.#holeTimeMs, timeMs)
  }

  /** Nothing that is not in the log was logged after this time. */
  get goneTimeMs(): number {
    return Math.max(this.log.goneTimeMs, this.#lostTimeMs)
  }

  /** As {@link Broker.read}; `since` is of this log. */
  read(range: ReadRange, patterns: readonly string[]): ReadResult {
    const result = this.log.read(range, patterns)
    if (result.gap !== undefined) return result
    const { since, rewindMs } = range
    const isBeforeHole =
      (since !== undefined && since.offset <= this.#holeOffset) ||
      (rewindMs !== undefined && this.#holeTimeMs >= this.#now() - rewindMs)
    return isBeforeHole ? { ...result, gap: 'history-expired' } : result
  }

  /** Whether all these messages of all these origins were taken in here, or are lost. */
  hasTaken(seen: ReadonlyMap<Origin, number>): boolean {
    for (const [origin, sequence] of seen) if (origin.known < sequence) return false
    return true
  }

  /**
   * How this log goes on for someone who has seen, of each origin, the messages up to a sequence, and all that stands here up to a place.
   * Cost: O(messages after that).
   * @param epoch See {@link Continuation.epoch}.
   */
  continuationOf(seen: ReadonlyMap<Origin, number>, from: number | undefined, epoch: string): Continuation {
    const seenByIndex = new Map<number, number>()
    for (const [{ index }, sequence] of seen) seenByIndex.set(index, sequence)
    const excluded = this.#originalsOf(seen)
    const { order } = this
    const isOld = (offset: number) => order.sequenceAt(offset) <= (seenByIndex.get(order.originAt(offset)) ?? 0)
    const isSeen = (offset: number) =>
      isOld(offset) || excluded.get(order.originAt(offset))?.has(order.sequenceAt(offset)) === true
    const isGap = from === undefined ? this.#hasLostAfter(seen) : from < order.heldAfter || from <= this.#holeOffset
    const first = Math.max(order.heldAfter, from ?? 0)
    let leftCount = isGap ? Number.POSITIVE_INFINITY : 0
    for (const origin of this.origins.all()) leftCount += Math.max(0, origin.known - (seen.get(origin) ?? 0))
    let start = order.last
    let seenUpTo = 0
    for (let offset = order.last; offset > first && leftCount > 0; offset--) {
      if (!isOld(offset)) leftCount--
      if (!isSeen(offset)) start = offset - 1
      else if (seenUpTo === 0) seenUpTo = offset
    }
    return { start, seenUpTo, isSeen, epoch, gap: isGap ? 'history-expired' : undefined }
  }

  #hasLostAfter(seen: ReadonlyMap<Origin, number>): boolean {
    for (const origin of this.origins.all()) if (origin.lost > (seen.get(origin) ?? 0)) return true
    return false
  }

  /** Sequences, by the index of their origin, of messages that someone has seen under another number. */
  #originalsOf(seen: ReadonlyMap<Origin, number>): ReadonlyMap<number, ReadonlySet<number>> {
    const originals = new Map<number, Set<number>>()
    for (const { origin, sequence, original, originalSequence } of this.#duplicates) {
      if (sequence > (seen.get(origin) ?? 0) || originalSequence <= (seen.get(original) ?? 0)) continue
      const sequences = originals.get(original.index) ?? new Set()
      originals.set(original.index, sequences.add(originalSequence))
    }
    return originals
  }

  #forgetDuplicates(): void {
    const held = this.#duplicates.filter(({ original, originalSequence }) => original.lost < originalSequence)
    this.#duplicates = held.slice(-MAX_DUPLICATES / 2)
  }

  #add(origin: Origin, sequence: number, entry: LogEntry, timeMs: number): Position {
    const { key, payload, isBinary, messageId } = entry
    this.untold.note(origin.index, sequence - origin.logged - 1)
    origin.logged = sequence
    this.order.append(origin.index, sequence, messageId)
    this.log.follow(this.order.last, key, payload, isBinary, timeMs)
    this.order.drop(this.log.heldAfter, (index, gone) => {
      const dropped = this.origins.at(index)
      if (dropped !== undefined && dropped.lost < gone) dropped.lost = gone
    })
    return this.log.position
  }
}
