import type { GapReason } from 'webmq-client/protocol'
import type { StepBudget } from '../../patterns/pattern-matcher.js'
import { decodeAttributes } from '../../ports/attributes.js'
import type { InboundMessage, ReadResult } from '../../ports/broker.js'
import { inbound } from '../../ports/messages.js'
import type { LoggedMessage, SegmentedLog, Wants } from './segmented-log.js'

/** What a {@link SlicedRead} reads. */
export interface SlicedReadOptions {
  readonly log: SegmentedLog
  readonly epoch: string
  /** Reads after this offset, which the log holds. */
  readonly start: number
  /** Reads the newest so many messages; `undefined`: all. */
  readonly newestCount: number | undefined
  readonly limit: number
  /** @param onAged Called for a matching message that is expired. */
  readonly wants: (onAged?: () => void) => Wants
  /** Why messages may be missing. */
  readonly gap: GapReason | undefined
  /** Whether a wanted message between these offsets was refused. */
  readonly hasRefused: (after: number, upTo: number) => boolean
  /** It asks for all messages after a position or a time. Those that the log drops or has expired are a gap. */
  readonly isContinuous: boolean
  /** It asks for all messages after a position. */
  readonly isSince: boolean
}

/** The search for where the newest messages begin. */
interface Search {
  readonly wants: Wants
  /** Everything after this offset was looked at. */
  readonly upTo: number
  /** The offset before the oldest message found so far. */
  readonly before: number
  readonly leftCount: number
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
  /** Absent once the start is found. */
  #search: Search | undefined
  /** Found messages are complete after this offset, */
  #from: number
  /** up to this one. */
  #at: number
  #hasAged = false
  #hasDropped = false

  constructor(options: SlicedReadOptions) {
    const { log, start, newestCount, limit, wants } = options
    this.log = log
    this.#options = options
    this.#upTo = log.lastOffset
    this.#from = start
    this.#at = start
    // A read that cannot exceed its limit reads to the end of the log.
    this.#limit = newestCount !== undefined && newestCount <= limit ? Number.POSITIVE_INFINITY : limit
    this.#wants = wants(() => {
      this.#hasAged = true
    })
    const upTo = this.#upTo
    if (newestCount !== undefined) this.#search = { wants: wants(), upTo, before: upTo, leftCount: newestCount }
  }

  /** Reads on, within the budget; returns whether the read is done. */
  advance(budget: StepBudget): boolean {
    if (this.#search !== undefined && !this.#findStart(this.#search, budget)) return false
    if (budget.left <= 0 && this.#at < this.#upTo) return false
    this.#skipDropped()
    const part = { after: this.#at, upTo: this.#upTo, wants: this.#wants, limit: this.#limit }
    this.#at = this.log.collect(part, this.#found, budget)
    return this.#at === this.#upTo || this.#found.length >= this.#limit
  }

  /** What was read. It is partial when the limit is reached, and when the read was not ended. */
  result(): ReadResult {
    const { epoch, isContinuous, isSince, hasRefused } = this.#options
    const isExpired = (this.#hasDropped && isContinuous) || (this.#hasAged && isSince)
    const refused = hasRefused(this.#from, this.#at) ? 'refused' : undefined
    const gap = this.#options.gap ?? (isExpired ? 'history-expired' : refused)
    const result = {
      messages: this.#found.map(({ key, payload, isBinary, offset, attributes }): InboundMessage => {
        const position = { epoch, offset }
        const known = attributes === undefined ? undefined : decodeAttributes(attributes)
        return inbound({ key, payload, isBinary, attributes: known }, position, undefined)
      }),
      position: { epoch, offset: this.#at },
      isPartial: this.#at < this.#upTo,
    }
    return gap === undefined ? result : { ...result, gap }
  }

  /** Returns whether the start is found. */
  #findStart(search: Search, budget: StepBudget): boolean {
    const { wants, upTo, leftCount: count } = search
    this.#skipDropped()
    const floor = this.#at
    const { before = search.before, leftCount, lookedAfter } = this.log.newest({ floor, upTo, wants, count }, budget)
    if (lookedAfter > floor) {
      this.#search = { wants, upTo: lookedAfter, before, leftCount }
      return false
    }
    this.#search = undefined
    this.#at = Math.max(floor, before)
    this.#from = this.#at
    return true
  }

  #skipDropped(): void {
    const { heldAfter } = this.log
    if (heldAfter <= this.#at) return
    this.#hasDropped = true
    this.#at = Math.min(heldAfter, this.#upTo)
  }
}
