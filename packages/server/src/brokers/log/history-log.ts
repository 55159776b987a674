import { type GapReason, matches, WebMQError } from 'webmq-client/protocol'
import type { InboundMessage, Position, ReadRange, ReadResult } from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { type LoggedMessage, MessageLog, type Wants } from './segmented-log.js'

/** How a log goes on after a place in another one that has the same messages in an order of its own. */
export interface Continuation {
  /** All that is new stands after this place. */
  readonly start: number
  /** After this place everything is new. */
  readonly seenUpTo: number
  /** Whether the message at a place between the two stands before the place in the other log. */
  isSeen(offset: number): boolean
  /** Of positions between the two, which alone do not say what had come before. */
  readonly epoch: string
  readonly gap: GapReason | undefined
}

/** Whether these options ask for a log at all. */
export function hasHistory({ history, historyMaxMessages, historyMaxBytes }: HistoryOptions): boolean {
  return !history.isEmpty && historyMaxMessages > 0 && historyMaxBytes > 0
}

/**
 * What a node keeps of its broker's log: the newest messages in memory, so that every read is answered at once and joins what is
 * live without a seam. A log begins anew, with another epoch, when its broker's has.
 */
export class OrderedLog {
  readonly #options: HistoryOptions
  readonly #isOn: boolean
  readonly #now: () => number
  #epoch = ''
  #messages: MessageLog

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

  /** Everything after this place is held. */
  get heldAfter(): number {
    return this.#messages.heldAfter
  }

  /** When the newest message was logged that is no longer held, Unix time in milliseconds; 0 before there is one. */
  get goneTimeMs(): number {
    return this.#messages.goneTimeMs
  }

  /** The message at a place; `undefined` when it is not held. */
  at(offset: number): LoggedMessage | undefined {
    return this.#messages.at(offset)
  }

  /** Begins anew with nothing; what is appended stands after `offset`. */
  restart(epoch: string, offset = 0): void {
    this.#epoch = epoch
    this.#messages = this.#empty(offset)
  }

  /** Gives a message the next place. */
  append(key: string, payload: Uint8Array, isBinary: boolean): Position {
    const offset = this.#messages.lastOffset + 1
    this.follow(offset, key, payload, isBinary, this.#now())
    return { epoch: this.#epoch, offset }
  }

  /**
   * Takes in a message that has its place.
   * @param offset Greater than that of any before.
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
   * @param continuation What `since` means here, when it is a place in another log.
   */
  read(range: ReadRange, patterns: readonly string[], continuation?: Continuation): ReadResult {
    if (!this.#isOn) throw new WebMQError('E_UNSUPPORTED', { detail: 'this broker keeps no history' })
    const [start, gap] = this.#start(range, patterns, continuation)
    let hasAged = false
    const isWanted = this.#wants(patterns, () => {
      hasAged = true
    })
    const wants = continuation === undefined ? isWanted : newOf(isWanted, continuation)
    const limit = range.limit ?? Number.POSITIVE_INFINITY
    const { messages, endOffset, isPartial } = this.#messages.after(start, wants, limit)
    const seenUpTo = continuation?.seenUpTo ?? 0
    const epochOf = (offset: number) => (offset < seenUpTo ? (continuation?.epoch ?? this.#epoch) : this.#epoch)
    const result = {
      messages: messages.map(
        ({ key, payload, isBinary, offset }): InboundMessage => ({
          key,
          payload,
          isBinary,
          position: { epoch: epochOf(offset), offset },
        }),
      ),
      position: { epoch: epochOf(endOffset), offset: endOffset },
      isPartial,
    }
    const reason = gap ?? (hasAged && range.since !== undefined ? 'history-expired' : undefined)
    return reason === undefined ? result : { ...result, gap: reason }
  }

  /** Where a read begins, and why something may be missing after that. */
  #start(
    range: ReadRange,
    patterns: readonly string[],
    continuation: Continuation | undefined,
  ): readonly [start: number, gap: GapReason | undefined] {
    const { since, rewindMs, last } = range
    const log = this.#messages
    let start = log.heldAfter
    let gap: GapReason | undefined
    if (continuation !== undefined) {
      gap = continuation.gap
      start = continuation.start
    } else if (since !== undefined) {
      // Everything in this log came after a position of another epoch, and so did what an earlier log has lost. An offset
      // that this log has not reached is not of this log, whatever it says.
      if (since.epoch !== this.#epoch || since.offset > log.lastOffset) gap = 'epoch-changed'
      else if (since.offset < log.heldAfter) gap = 'history-expired'
      else start = since.offset
    }
    if (rewindMs !== undefined) {
      const fromMs = this.#now() - rewindMs
      if (log.goneTimeMs >= fromMs && log.goneTimeMs > this.#oldestGivenMs(patterns)) gap ??= 'history-expired'
      start = Math.max(start, log.placeBefore(fromMs))
    }
    const maxMessages = since === undefined ? this.#maxMessages(patterns, last) : last
    if (maxMessages !== undefined) {
      const isWanted = this.#wants(patterns)
      start = log.placeBeforeNewest(
        maxMessages,
        continuation === undefined ? isWanted : newOf(isWanted, continuation),
        start,
      )
    }
    const isLogged = patterns.every((pattern) => this.covers(pattern))
    return [start, gap ?? (isLogged ? undefined : 'no-history')]
  }

  /** Of one key, no more than its rule says. */
  #maxMessages(patterns: readonly string[], last: number | undefined): number | undefined {
    const [only = ''] = patterns
    const rule = patterns.length === 1 && isKeyPattern(only) ? this.#options.history.ruleOf(only) : undefined
    if (rule === undefined) return last
    return last === undefined ? rule.maxMessages : Math.min(last, rule.maxMessages)
  }

  /** Messages before this time are given to nobody, so that nobody misses them. */
  #oldestGivenMs(patterns: readonly string[]): number {
    const [only = ''] = patterns
    const rule = patterns.length === 1 && isKeyPattern(only) ? this.#options.history.ruleOf(only) : undefined
    const maxAgeMs = rule === undefined ? this.#options.history.maxAgeMs : rule.maxAgeMs
    return maxAgeMs === undefined ? 0 : this.#now() - maxAgeMs
  }

  /** @param onAged Called for a message that matches and is too old to be given. */
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

  #empty(offset: number): MessageLog {
    const { historyMaxMessages: maxMessages, historyMaxBytes: maxBytes } = this.#options
    return new MessageLog({ maxMessages, maxBytes }, offset)
  }
}

function newOf(wants: Wants, { seenUpTo, isSeen }: Continuation): Wants {
  return (key, timeMs, offset) => (offset > seenUpTo || !isSeen(offset)) && wants(key, timeMs, offset)
}

function isKeyPattern(pattern: string): boolean {
  return !pattern.includes('*') && !pattern.includes('#')
}

/** Whether any of the patterns matches; asked for every message of a read, hence the short way for a pattern that is a key. */
function matchedBy(patterns: readonly string[]): (key: string) => boolean {
  const [only] = patterns
  if (only !== undefined && patterns.length === 1) {
    if (only === '#') return () => true
    if (isKeyPattern(only)) return (key) => key === only
    return (key) => matches(only, key)
  }
  return (key) => patterns.some((pattern) => matches(pattern, key))
}
