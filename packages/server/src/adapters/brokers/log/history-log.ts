import { WebMQError } from 'webmq-client/protocol'
import { andThen, type MaybePromise } from '../../../kernel/base/maybe-promise.js'
import { encodeAttributes } from '../../../kernel/ports/attributes.js'
import type { Position, Reader, ReadRange, ReadResult } from '../../../kernel/ports/broker.js'
import type { LogStats } from '../../../kernel/ports/broker-stats.js'
import type { HistoryOptions } from '../../../kernel/ports/history-rules.js'
import type { MessageContent } from '../../../kernel/ports/messages.js'
import type { LogPlace } from '../../../kernel/ports/shared-log.js'
import type { LoggedDelivery } from '../remote/link.js'
import { fingerprintOfPlace } from './fingerprint.js'
import { type DoubtReason, LogDoubt, LogGaps } from './gaps.js'
import type { StepBudget } from './pattern-matcher.js'
import { ReadTurns } from './read-turns.js'
import { RetainedSet } from './retained-set.js'
import { RolledUp, withTexts } from './rolled-up.js'
import { SegmentedLog } from './segmented-log.js'
import { SlicedRead, StateRead } from './sliced-read.js'
import { Expiry, matchedBy, onlyKeyOf } from './wants.js'

export function hasHistory({ history, historyMaxMessages, historyMaxBytes }: HistoryOptions): boolean {
  return !history.isEmpty && historyMaxMessages > 0 && historyMaxBytes > 0
}

export function hasRetained(options: HistoryOptions): boolean {
  return hasHistory(options) && options.retain !== undefined && options.retain.patterns.length > 0
}

/**
 * The newest messages of a log, in memory. Live messages continue from a read without a gap or a duplicate: a read ends
 * where the log ended when it began. The log restarts with another epoch when the broker's log does.
 */
export class HistoryLog {
  readonly #options: HistoryOptions
  readonly #isOn: boolean
  readonly #now: () => number
  readonly #expiry: Expiry
  readonly #turns = new ReadTurns()
  #messages: SegmentedLog
  readonly #doubt = new LogDoubt()
  #gaps: LogGaps
  /** The last message of each retained key; absent without rules for them. */
  retained: RetainedSet | undefined
  #rolledUp = new RolledUp()

  /** @param now Unix time in milliseconds. */
  constructor(options: HistoryOptions, now: () => number = Date.now) {
    this.#options = options
    this.#isOn = hasHistory(options)
    this.#now = now
    this.#expiry = new Expiry(options.history, now)
    this.#messages = this.#empty('', 0)
    this.#gaps = new LogGaps(this.#messages, this.#doubt)
    this.retained = this.#noneRetained(0)
  }

  logs(key: string): boolean {
    return this.#isOn && this.#options.history.ruleOf(key) !== undefined
  }

  retains(key: string): boolean {
    return this.#isOn && this.#options.retain?.has(key) === true
  }

  /** Whether all messages that the pattern matches are logged. */
  covers(pattern: string): boolean {
    return this.#isOn && this.#options.history.covers(pattern)
  }

  get epoch(): string {
    return this.#messages.epoch
  }

  get position(): Position {
    return this.positionAt(this.#messages.lastOffset)
  }

  /** The position at this offset. Its fingerprint is that of the newest record at or before it; 0: unknown. */
  positionAt(offset: number): Position {
    return this.#messages.positionAt(offset)
  }

  stats(lagMs = 0): LogStats {
    const { count, byteCount, oldestTimeMs } = this.#messages
    return { messageCount: count, byteCount, oldestTimeMs, lagMs, heldShare: this.#heldShare() }
  }

  #heldShare(): number {
    const { history, historyMaxMessages } = this.#options
    const { count, droppedTimeMs } = this.#messages
    if (droppedTimeMs === 0) return 1
    const ofMessages = count >= historyMaxMessages ? historyMaxMessages / history.mostMessages : 1
    const ofTime = (this.#now() - droppedTimeMs) / history.longestAgeMs
    return Math.max(0, Math.min(1, ofMessages, history.longestAgeMs === 0 ? 1 : ofTime))
  }

  /** Restarts as an empty log; the next message follows `offset`. */
  restart(epoch: string, offset = 0, fingerprint = 0): void {
    this.#messages = this.#empty(epoch, offset, fingerprint)
    this.retained = this.#noneRetained(offset)
    this.#rolledUp = new RolledUp()
    this.#gaps = new LogGaps(this.#messages, this.#doubt)
  }

  /** The epoch began at this offset: what is before is left of earlier epochs, whose positions may be after it [P-8.3]. */
  began(offset: number): void {
    this.#gaps.epochBeganAt = offset
  }

  /** No message has an offset after the end of the log, up to this one. Ignored when the log is longer. */
  skipTo(offset: number, fingerprint: number): void {
    if (offset > this.#messages.lastOffset) this.#messages.skipTo(offset, fingerprint)
  }

  /**
   * The message at this offset was refused: reads across it whose patterns match report `refused`.
   * @param pattern Its key, or `#` when it does not tell its key.
   */
  refuse(offset: number, fingerprint: number, pattern: string): void {
    this.#messages.skipTo(offset, fingerprint)
    this.#gaps.refusals.add(offset, pattern, this.#messages.heldAfter)
  }

  /** The same, at the next offset, in a log that gives its offsets itself. */
  refuseNext(pattern: string): void {
    const offset = this.#messages.lastOffset + 1
    this.refuse(offset, fingerprintOfPlace(offset, this.#now()), pattern)
  }

  /**
   * Messages may be missing here. Takes an offset of the log: a read that covers this offset or time reports
   * `broker-lost`, a later one does not.
   */
  interrupt(): void {
    const offset = this.#messages.lastOffset + 1
    const nowMs = this.#now()
    this.#messages.skipTo(offset, fingerprintOfPlace(offset, nowMs))
    this.#gaps.interrupted(offset, nowMs)
  }

  /** As {@link SharedLog.dispute}. */
  dispute(isDisputed: boolean): void {
    if (this.#doubt.isOpen && !isDisputed) this.#doubt.extend(this.position, this.#now(), 'rules-differ')
    this.#doubt.isOpen = isDisputed
  }

  get isDisputed(): boolean {
    return this.#doubt.isOpen
  }

  /** As {@link SharedLog.doubt}. */
  doubt(upTo: LogPlace, reason: DoubtReason = 'rules-differ'): boolean {
    return upTo.epoch === this.epoch && this.#doubt.extend(upTo, this.#now(), reason)
  }

  /** As {@link SharedLog.doubtedUpTo}. */
  get doubtedUpTo(): LogPlace | undefined {
    const { epoch, offset } = this.position
    return this.#doubt.isOpen ? { epoch, offset } : this.#doubt.upTo
  }

  append(message: MessageContent): Position {
    const offset = this.#messages.lastOffset + 1
    const nowMs = this.#now()
    const fingerprint = fingerprintOfPlace(offset, nowMs)
    this.#add(message, offset, fingerprint, nowMs)
    this.#dropOld(nowMs)
    return { epoch: this.epoch, offset, fingerprint }
  }

  /**
   * Adds a message of a log elsewhere. Its offset is greater than any before, and its payload is copied. Of a clock that is
   * ahead, it counts as logged now: log times never decrease.
   */
  follow(message: Omit<LoggedDelivery, 'source'>): void {
    const nowMs = this.#now()
    this.#add(message, message.offset, message.fingerprint, Math.min(message.timeMs, nowMs))
    this.#dropOld(nowMs)
  }

  #add(message: MessageContent, offset: number, fingerprint: number, timeMs: number): void {
    const { key, payload, isBinary, attributes } = message
    const bytes = attributes === undefined ? undefined : encodeAttributes(attributes)
    this.#messages.append(message, offset, fingerprint, timeMs, bytes)
    if (attributes?.stream !== undefined)
      this.#rolledUp.note(key, payload, attributes, offset, this.#messages.heldAfter)
    this.retained?.note({ key, payload, isBinary, offset, fingerprint, attributes })
  }

  #dropOld(nowMs: number): void {
    const { maxAgeMs } = this.#options.history
    if (maxAgeMs !== undefined) this.#messages.dropBefore(nowMs - maxAgeMs)
  }

  /**
   * As {@link Broker.read}. Answers at once, unless the read is long.
   * @throws {WebMQError} `E_POSITION_INVALID` for a position of this epoch beyond the end of the log.
   */
  read(range: ReadRange, patterns: readonly string[], reader?: Reader): MaybePromise<ReadResult> {
    if (!this.#isOn) throw new WebMQError('E_UNSUPPORTED', { detail: 'this broker keeps no history' })
    const begin = () => (range.isState === true ? this.#beginState(range, patterns) : this.#begin(range, patterns))
    let log = this.#messages
    let read = begin()
    this.#assertReached(range, 'E_POSITION_INVALID')
    const slice = (budget: StepBudget) => {
      // The log was restarted meanwhile. It may end before a position that was good when the read began.
      if (log !== this.#messages) {
        log = this.#messages
        read = begin()
        this.#assertReached(range, 'E_NODE_BEHIND')
      }
      return read.advance(budget)
    }
    const result = () => (range.view === 'log' ? read.result() : withTexts(read.result()))
    return andThen(this.#turns.run(slice, reader), result)
  }

  #assertReached({ isState, since, before }: ReadRange, errorCode: 'E_POSITION_INVALID' | 'E_NODE_BEHIND'): void {
    for (const position of [since, isState === true ? undefined : before])
      if (position !== undefined && this.isAfterEnd(position))
        throw new WebMQError(errorCode, { detail: 'it is after the end of the log' })
  }

  #beginState({ since, limit = Number.POSITIVE_INFINITY }: ReadRange, patterns: readonly string[]): StateRead {
    const { retain } = this.#options
    const set = this.retained
    if (set === undefined || !patterns.every((pattern) => retain?.covers(pattern) === true))
      throw new WebMQError('E_UNSUPPORTED', { detail: 'no rule retains these keys' })
    const gap = since === undefined ? undefined : this.#gaps.gapOf(since, set.removalsCompleteAfter, true)
    const log = this.#messages
    const after = gap === undefined ? (since?.offset ?? 0) : log.lastOffset
    return new StateRead({ set, log, after, limit, wants: matchedBy(patterns), gap })
  }

  #begin(range: ReadRange, patterns: readonly string[]): SlicedRead {
    const { since, before, rewindMs, last, limit = Number.POSITIVE_INFINITY, view = 'messages' } = range
    const log = this.#messages
    const gaps = this.#gaps
    let start = log.heldAfter
    let gap = since === undefined ? undefined : gaps.gapOf(since, start)
    if (since !== undefined) start = Math.max(start, since.epoch === log.epoch ? since.offset : gaps.epochBeganAt)
    if (view === 'log' && since === undefined) start = Math.max(start, this.#rolledUp.endedAt(onlyKeyOf(patterns)))
    // What stood before a position of another epoch was never in this log.
    const isForeign = before !== undefined && before.epoch !== log.epoch
    if (isForeign) gap = 'epoch-changed'
    else if (before !== undefined && before.offset > start && !gaps.isSame(before)) gap ??= 'broker-lost'
    if (rewindMs !== undefined) {
      const fromMs = this.#now() - rewindMs
      const oldestGivenMs = this.#expiry.oldestGivenMs(patterns)
      gap ??= gaps.gapOfTime((timeMs) => timeMs >= fromMs && timeMs > oldestGivenMs, log.droppedTimeMs)
      start = Math.max(start, log.offsetBefore(fromMs))
    }
    if (!patterns.every((pattern) => this.covers(pattern))) gap ??= 'no-history'
    const isMatch = this.#rolledUp.seen(view, matchedBy(patterns))
    const isBounded = since === undefined
    return new SlicedRead({
      log,
      start: isForeign ? log.lastOffset : start,
      before: isForeign ? undefined : before?.offset,
      newestCount: last,
      maxCount: isBounded && view !== 'log' ? this.#expiry.ruleOf(patterns)?.maxMessages : undefined,
      limit,
      key: onlyKeyOf(patterns),
      mayBeCut: () => this.#mayBeCut(patterns),
      reportsCut: isBounded && rewindMs === undefined && !isForeign,
      wants: (onAged) => this.#expiry.wants(isMatch, onAged),
      gapOf: ({ after, upTo, hasDropped, hasAged }) => {
        const isExpired = isBounded ? hasDropped && rewindMs !== undefined : hasDropped || hasAged
        return gap ?? (isExpired ? 'history-expired' : gaps.gapBetween(after, upTo, isMatch))
      },
    })
  }

  isAfterEnd({ epoch, offset }: Pick<Position, 'epoch' | 'offset'>): boolean {
    return epoch === this.epoch && offset > this.#messages.lastOffset
  }

  /** Whether the log may have lost messages of the patterns since its epoch began. */
  #mayBeCut(patterns: readonly string[]): boolean {
    const log = this.#messages
    return log.startOffset > this.#gaps.epochBeganAt || log.mayHaveDropped(onlyKeyOf(patterns))
  }

  #noneRetained(offset: number): RetainedSet | undefined {
    const { retain } = this.#options
    return retain !== undefined && hasRetained(this.#options) ? new RetainedSet(retain, offset) : undefined
  }

  #empty(epoch: string, offset: number, fingerprint = 0): SegmentedLog {
    const { historyMaxMessages: maxMessages, historyMaxBytes: maxBytes } = this.#options
    return new SegmentedLog({ maxMessages, maxBytes }, epoch, offset, fingerprint)
  }
}
