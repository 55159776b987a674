import { type GapReason, matches, WebMQError } from 'webmq-client/protocol'
import type { InboundMessage, Position, ReadRange, ReadResult } from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { SegmentedLog, type Wants } from './segmented-log.js'

/** Whether these options ask for a log. */
export function hasHistory({ history, historyMaxMessages, historyMaxBytes }: HistoryOptions): boolean {
  return !history.isEmpty && historyMaxMessages > 0 && historyMaxBytes > 0
}

/** Offsets of lost messages: those between the two. */
interface LostOffsets {
  readonly after: number
  readonly before: number
}

/**
 * The newest messages of a log, in memory. A read answers at once, and live messages continue from it without a gap or
 * a duplicate. The log restarts with another epoch when the broker's log does.
 */
export class HistoryLog {
  readonly #options: HistoryOptions
  readonly #isOn: boolean
  readonly #now: () => number
  #epoch = ''
  #messages: SegmentedLog
  /** Messages may be missing at or before this offset: those logged up to `#interruptedAtMs`. */
  #completeAfter = 0
  #interruptedAtMs = 0
  /** In order. Fewer than messages, because a message stands between any two. */
  #losses: LostOffsets[] = []

  /** @param now Unix time in milliseconds. */
  constructor(options: HistoryOptions, now: () => number = Date.now) {
    this.#options = options
    this.#isOn = hasHistory(options)
    this.#now = now
    this.#messages = this.#empty(0)
  }

  /** Whether messages with this key are logged. */
  logs(key: string): boolean {
    return this.#isOn && this.#options.history.ruleOf(key) !== undefined
  }

  /** Whether all messages that the pattern matches are logged. */
  covers(pattern: string): boolean {
    return this.#isOn && this.#options.history.covers(pattern)
  }

  /** The end of the log. */
  get position(): Position {
    return { epoch: this.#epoch, offset: this.#messages.lastOffset }
  }

  /** Restarts as an empty log; the next message follows `offset`. */
  restart(epoch: string, offset = 0): void {
    this.#epoch = epoch
    this.#messages = this.#empty(offset)
    this.#completeAfter = offset
    this.#interruptedAtMs = 0
    this.#losses = []
  }

  /** No message has an offset after the end of the log, up to this one. Ignored when the log is longer. */
  skipTo(offset: number): void {
    if (offset > this.#messages.lastOffset) this.#messages.skipTo(offset)
  }

  /**
   * The log goes on after this offset. Those in between may be the offsets of messages that were given out and then
   * lost: a read from there reports `history-expired`. Ignored when the log is longer.
   * @param isComplete Otherwise messages may be missing here: a read from any place before reports `broker-lost`.
   */
  fence(offset: number, timeMs: number, isComplete: boolean): void {
    const { lastOffset } = this.#messages
    if (offset <= lastOffset) return
    if (isComplete) this.#lose(lastOffset, offset)
    this.#messages.skipTo(offset)
    if (!isComplete) this.#incompleteBefore(timeMs)
  }

  /**
   * Messages may be missing here. Takes an offset of the log: a read that covers this offset or time reports
   * `broker-lost`, a later one does not.
   */
  interrupt(): void {
    this.#messages.skipTo(this.#messages.lastOffset + 1)
    this.#incompleteBefore(this.#now())
  }

  /** Adds a message at the next offset. */
  append(key: string, payload: Uint8Array, isBinary: boolean): Position {
    const offset = this.#messages.lastOffset + 1
    this.follow(offset, key, payload, isBinary, this.#now())
    return { epoch: this.#epoch, offset }
  }

  /**
   * Adds a message at a given offset.
   * @param offset Greater than any before.
   * @param payload Copied.
   * @param timeMs When it was logged, Unix time in milliseconds.
   */
  follow(offset: number, key: string, payload: Uint8Array, isBinary: boolean, timeMs: number): void {
    this.#messages.append(offset, key, payload, isBinary, timeMs)
    const { maxAgeMs } = this.#options.history
    if (maxAgeMs !== undefined) this.#messages.dropBefore(this.#now() - maxAgeMs)
  }

  /**
   * As {@link Broker.read}.
   * @throws {WebMQError} `E_POSITION_INVALID` for a position of this epoch beyond the end of the log.
   */
  read(range: ReadRange, patterns: readonly string[]): ReadResult {
    if (!this.#isOn) throw new WebMQError('E_UNSUPPORTED', { detail: 'this broker keeps no history' })
    const [start, gap] = this.#start(range, patterns)
    let hasAged = false
    const wants = this.#wants(patterns, () => {
      hasAged = true
    })
    const limit = range.limit ?? Number.POSITIVE_INFINITY
    const { messages, endOffset, isPartial } = this.#messages.after(start, wants, limit)
    const epoch = this.#epoch
    const result = {
      messages: messages.map(
        ({ key, payload, isBinary, offset }): InboundMessage => ({
          key,
          payload,
          isBinary,
          position: { epoch, offset },
        }),
      ),
      position: { epoch, offset: endOffset },
      isPartial,
    }
    const reason = gap ?? (hasAged && range.since !== undefined ? 'history-expired' : undefined)
    return reason === undefined ? result : { ...result, gap: reason }
  }

  /** The offset to read after, and why messages may be missing after it. */
  #start(range: ReadRange, patterns: readonly string[]): readonly [start: number, gap: GapReason | undefined] {
    const { since, rewindMs, last } = range
    const log = this.#messages
    let start = log.heldAfter
    let gap: GapReason | undefined
    if (since !== undefined) {
      // A position of another epoch is older than this whole log, and an earlier log may have lost messages after it.
      if (since.epoch !== this.#epoch) gap = 'epoch-changed'
      else if (since.offset > log.lastOffset)
        throw new WebMQError('E_POSITION_INVALID', { detail: 'it is after the end of the log' })
      else if (since.offset < log.heldAfter) gap = 'history-expired'
      else {
        start = since.offset
        if (start < this.#completeAfter) gap = 'broker-lost'
        else if (this.#isLost(start)) gap = 'history-expired'
      }
    }
    if (rewindMs !== undefined) {
      const fromMs = this.#now() - rewindMs
      const oldestGivenMs = this.#oldestGivenMs(patterns)
      const isMissed = (timeMs: number) => timeMs >= fromMs && timeMs > oldestGivenMs
      if (isMissed(log.droppedTimeMs)) gap ??= 'history-expired'
      if (isMissed(this.#interruptedAtMs)) gap ??= 'broker-lost'
      start = Math.max(start, log.offsetBefore(fromMs))
    }
    const maxMessages = since === undefined ? this.#maxMessages(patterns, last) : last
    if (maxMessages !== undefined) {
      start = log.offsetBeforeNewest(maxMessages, this.#wants(patterns), start)
    }
    const isLogged = patterns.every((pattern) => this.covers(pattern))
    return [start, gap ?? (isLogged ? undefined : 'no-history')]
  }

  #incompleteBefore(timeMs: number): void {
    this.#completeAfter = this.#messages.lastOffset
    this.#interruptedAtMs = timeMs
  }

  #lose(after: number, before: number): void {
    const losses = this.#losses.filter((loss) => loss.before > this.#messages.heldAfter)
    const last = losses.at(-1)
    const isAdjacent = last?.before === after
    this.#losses = isAdjacent ? [...losses.slice(0, -1), { after: last.after, before }] : [...losses, { after, before }]
  }

  #isLost(offset: number): boolean {
    return this.#losses.some(({ after, before }) => after < offset && offset < before)
  }

  /** For one key the limit of its rule, or `last` if that is lower. */
  #maxMessages(patterns: readonly string[], last: number | undefined): number | undefined {
    const [only = ''] = patterns
    const rule = patterns.length === 1 && isKeyPattern(only) ? this.#options.history.ruleOf(only) : undefined
    if (rule === undefined) return last
    return last === undefined ? rule.maxMessages : Math.min(last, rule.maxMessages)
  }

  /** Older messages are expired: reads never return them, so their loss is no gap. */
  #oldestGivenMs(patterns: readonly string[]): number {
    const [only = ''] = patterns
    const rule = patterns.length === 1 && isKeyPattern(only) ? this.#options.history.ruleOf(only) : undefined
    const maxAgeMs = rule === undefined ? this.#options.history.maxAgeMs : rule.maxAgeMs
    return maxAgeMs === undefined ? 0 : this.#now() - maxAgeMs
  }

  /** @param onAged Called for a matching message that is expired. */
  #wants(patterns: readonly string[], onAged?: () => void): Wants {
    const isMatch = matchedBy(patterns)
    const { history } = this.#options
    if (!history.hasAges) return isMatch
    const nowMs = this.#now()
    return (key, timeMs) => {
      if (!isMatch(key)) return false
      const maxAgeMs = history.ruleOf(key)?.maxAgeMs
      const isGiven = maxAgeMs === undefined || timeMs >= nowMs - maxAgeMs
      if (!isGiven) onAged?.()
      return isGiven
    }
  }

  #empty(offset: number): SegmentedLog {
    const { historyMaxMessages: maxMessages, historyMaxBytes: maxBytes } = this.#options
    return new SegmentedLog({ maxMessages, maxBytes }, offset)
  }
}

function isKeyPattern(pattern: string): boolean {
  return !pattern.includes('*') && !pattern.includes('#')
}

/** Whether any pattern matches. Called for every message of a read, so a pattern that is a key takes a fast path. */
function matchedBy(patterns: readonly string[]): (key: string) => boolean {
  const [only] = patterns
  if (only !== undefined && patterns.length === 1) {
    if (only === '#') return () => true
    if (isKeyPattern(only)) return (key) => key === only
    return (key) => matches(only, key)
  }
  return (key) => patterns.some((pattern) => matches(pattern, key))
}
