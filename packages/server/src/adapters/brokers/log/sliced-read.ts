import type { GapReason } from 'webmq-client/protocol'
import { decodeAttributes } from '../../../kernel/ports/attributes.js'
import type { InboundMessage, ReadResult } from '../../../kernel/ports/broker.js'
import { inbound } from '../../../kernel/ports/messages.js'
import type { StepBudget } from './pattern-matcher.js'
import type { RetainedMessage, RetainedSet } from './retained-set.js'
import type { LoggedMessage } from './segment.js'
import type { Search, SegmentedLog, Wants } from './segmented-log.js'

export interface SlicedReadOptions {
  readonly log: SegmentedLog
  /** Reads after this offset, which the log holds. */
  readonly start: number
  /** Reads what is before this offset; `undefined`: up to the end. */
  readonly before: number | undefined
  /** Newest messages that are read; `undefined`: all. */
  readonly newestCount: number | undefined
  /** Newest messages of the log that are given, and no older ones; `undefined`: all. */
  readonly maxCount: number | undefined
  /** Whether wanted messages may have been dropped before the read began. */
  readonly mayBeCut: () => boolean
  readonly reportsCut: boolean
  readonly limit: number
  /** The only key that is wanted; `undefined` with patterns. */
  readonly key: string | undefined
  /** @param onAged Called for a matching message that is expired. */
  readonly wants: (onAged?: () => void) => Wants
  /** Why messages may be missing from what was read. */
  readonly gapOf: (span: ReadSpan) => GapReason | undefined
}

export interface ReadSpan {
  readonly after: number
  readonly upTo: number
  /** The log has dropped messages before they were looked at. */
  readonly hasDropped: boolean
  readonly hasAged: boolean
}

/**
 * One read of a log, in slices. It reads up to where the log ended when it began: live messages continue from there.
 * Messages that the log drops before they were looked at are a gap.
 */
export class SlicedRead {
  readonly log: SegmentedLog
  readonly #options: SlicedReadOptions
  readonly #upTo: number
  readonly #limit: number
  readonly #found: LoggedMessage[] = []
  readonly #wants: Wants
  /** Finds the oldest message that the rule of the key gives, for a read that does not reach the end of the log. */
  #bound: NewestSearch | undefined
  /** Finds where the newest messages begin, this many. */
  readonly #count: number
  #newest: NewestSearch | undefined
  /** Looks for an older message than those that the rule gives. */
  #older: NewestSearch | undefined
  #isStarted = false
  /** Found messages are complete after this offset, */
  #from: number
  /** up to this one. */
  #at: number
  #hasAged = false
  #hasDropped = false
  /** Fewer messages were found than were asked for. */
  #isShort = false
  /** The log holds an older message, and does not give it. */
  #hasOlder = false

  constructor(options: SlicedReadOptions) {
    const { log, start, before, newestCount, maxCount, limit, wants, key } = options
    this.log = log
    this.#options = options
    const end = log.lastOffset
    this.#upTo = before === undefined ? end : Math.max(0, Math.min(end, before - 1))
    this.#from = start
    this.#at = this.#from
    const isBefore = this.#upTo < end
    const count = isBefore ? newestCount : minimum(newestCount, maxCount)
    // A read that cannot exceed its limit reads to its end.
    this.#limit = count !== undefined && count <= limit ? Number.POSITIVE_INFINITY : limit
    this.#wants = wants(() => {
      this.#hasAged = true
    })
    const searched = wants(() => {
      this.#hasOlder = true
    })
    if (isBefore && maxCount !== undefined)
      this.#bound = new NewestSearch(log, { wants: wants(), key, upTo: end }, maxCount)
    this.#count = count ?? 0
    if (count !== undefined) this.#newest = new NewestSearch(log, { wants: searched, key, upTo: this.#upTo }, count)
  }

  /** Reads on, within the budget; returns whether the read is done. */
  advance(budget: StepBudget): boolean {
    if (!this.#isStarted && !this.#findStart(budget)) return false
    if (budget.left <= 0 && this.#at < this.#upTo) return false
    this.#skipDropped()
    const { key } = this.#options
    const part = { after: this.#at, upTo: this.#upTo, wants: this.#wants, limit: this.#limit, key }
    this.#at = this.log.collect(part, this.#found, budget)
    return this.#at === this.#upTo || this.#found.length >= this.#limit
  }

  /** What was read. It is partial when the limit is reached, and when the read was not ended. */
  result(): ReadResult {
    const end = this.log.positionAt(this.#at)
    const { epoch } = end
    const [hasDropped, hasAged] = [this.#hasDropped, this.#hasAged]
    const gap = this.#options.gapOf({ after: this.#from, upTo: this.#at, hasDropped, hasAged })
    const result = {
      messages: this.#found.map(({ key, payload, isBinary, offset, fingerprint, attributes }): InboundMessage => {
        const position = { epoch, offset, fingerprint }
        const known = attributes === undefined ? undefined : decodeAttributes(attributes)
        return inbound({ key, payload, isBinary, attributes: known }, position, undefined)
      }),
      position: end,
      isPartial: this.#at < this.#upTo,
    }
    const told = gap === undefined ? result : { ...result, gap }
    return this.#isCut(result) ? { ...told, isCut: true } : told
  }

  #isCut({ messages, isPartial }: ReadResult): boolean {
    const { reportsCut, newestCount = 0, mayBeCut } = this.#options
    const isShort = this.#isShort || (!isPartial && messages.length < newestCount)
    return reportsCut && isShort && (this.#hasOlder || mayBeCut())
  }

  #findStart(budget: StepBudget): boolean {
    this.#skipDropped()
    if (this.#bound !== undefined) {
      if (!this.#bound.advance(this.#at, budget)) return false
      if (this.#bound.leftCount === 0) this.#lookForOlder(this.#bound.before)
      this.#bound = undefined
    }
    const newest = this.#newest
    if (newest !== undefined) {
      if (budget.left <= 0 || !newest.advance(this.#at, budget)) return false
      this.#newest = undefined
      this.#isShort = this.#count - newest.leftCount < (this.#options.newestCount ?? 0)
      if (newest.leftCount === 0 && this.#isShort) this.#lookForOlder(newest.before)
      this.#at = Math.max(this.#at, newest.before)
    }
    if (this.#older !== undefined && this.#isShort && !this.#hasOlder) {
      if (budget.left <= 0 || !this.#older.advance(this.log.heldAfter, budget)) return false
      this.#hasOlder = this.#older.leftCount === 0
    }
    this.#isStarted = true
    this.#from = this.#at
    return true
  }

  /** The rule of the key gives nothing up to this offset. */
  #lookForOlder(offset: number): void {
    const { wants, key } = this.#options
    this.#older = new NewestSearch(this.log, { wants: wants(), key, upTo: Math.min(offset, this.#upTo) }, 1)
    this.#at = Math.min(Math.max(this.#at, offset), this.#upTo)
  }

  #skipDropped(): void {
    const { heldAfter } = this.log
    if (heldAfter <= this.#at || this.#at >= this.#upTo) return
    this.#hasDropped = true
    this.#at = Math.min(heldAfter, this.#upTo)
  }
}

function minimum(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
}

/** A search for where the newest wanted messages of a log begin, in slices. */
class NewestSearch {
  readonly #log: SegmentedLog
  readonly #search: Pick<Search, 'wants' | 'key'>
  /** Everything after this offset was looked at. */
  #upTo: number
  /** The offset before the oldest message that was found. */
  before: number
  leftCount: number

  constructor(log: SegmentedLog, search: Search, count: number) {
    const { upTo } = search
    this.#log = log
    this.#search = search
    this.#upTo = upTo
    this.before = upTo
    this.leftCount = count
  }

  /** Searches on, within the budget; returns whether the search is done. @param floor Messages up to it do not count. */
  advance(floor: number, budget: StepBudget): boolean {
    const { before, leftCount, lookedAfter } = this.#log.newest(
      { ...this.#search, floor, upTo: this.#upTo, count: this.leftCount },
      budget,
    )
    this.before = before ?? this.before
    this.leftCount = leftCount
    this.#upTo = lookedAfter
    return lookedAfter <= floor
  }
}

export interface StateReadOptions {
  readonly set: RetainedSet
  readonly log: SegmentedLog
  readonly after: number
  readonly limit: number
  readonly wants: Wants
  readonly gap: GapReason | undefined
}

/**
 * One read of the retained messages, in slices. A message that is replaced between two slices moves to the end, where
 * the read finds the new one. So the result is the state at the position where the last slice ends.
 */
export class StateRead {
  readonly #options: StateReadOptions
  readonly #found: RetainedMessage[] = []
  #after: number
  #isAtEnd = false

  constructor(options: StateReadOptions) {
    this.#options = options
    this.#after = options.after
  }

  /** Reads on, within the budget; returns whether the read is done. */
  advance(budget: StepBudget): boolean {
    const { set, wants, limit, log } = this.#options
    const lookedAt = set.collect({ after: this.#after, wants, limit }, this.#found, budget)
    this.#isAtEnd = lookedAt === undefined
    this.#after = lookedAt ?? Math.max(this.#after, log.lastOffset)
    return this.#isAtEnd || this.#found.length >= limit
  }

  /** What was read. It is partial when the limit is reached, and when the read was not ended. */
  result(): ReadResult {
    const { log, gap } = this.#options
    const position = log.positionAt(this.#after)
    const { epoch } = position
    return {
      messages: this.#found.map((message) => {
        const { offset, fingerprint } = message
        return inbound(message, { epoch, offset, fingerprint }, undefined)
      }),
      position,
      isPartial: !this.#isAtEnd,
      ...(gap === undefined ? undefined : { gap }),
    }
  }
}
