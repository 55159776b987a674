import type { GapReason } from 'webmq-client/protocol'
import type { Position } from '../../../kernel/ports/broker.js'
import type { LogPlace } from '../../../kernel/ports/shared-log.js'
import type { SegmentedLog, Wants } from './segmented-log.js'

/** Where a log of one epoch may lack messages, and why: all its reads take the reason of a gap from here. */
export class LogGaps {
  readonly #log: SegmentedLog
  /** Messages up to this offset are of earlier epochs. */
  epochBeganAt = 0
  readonly refusals = new Refusals()
  /** Messages may be missing at or before this offset: those logged up to `#interruptedAtMs`. */
  #completeAfter: number
  #interruptedAtMs = 0
  readonly #doubt: LogDoubt

  constructor(log: SegmentedLog, doubt: LogDoubt) {
    this.#log = log
    this.#doubt = doubt
    this.#completeAfter = log.startOffset
  }

  /** Messages may be missing at or before this offset, which were logged up to this time. */
  interrupted(offset: number, timeMs: number): void {
    this.#completeAfter = offset
    this.#interruptedAtMs = timeMs
  }

  /**
   * Why messages after this position may be missing.
   * @param keptAfter Everything after this offset is kept.
   * @param isState The state is read, of which a message that is not logged is no part.
   */
  gapOf(position: Position, keptAfter: number, isState = false): GapReason | undefined {
    const { epoch, offset } = position
    // An earlier epoch is older than this whole log, and its log may have lost messages after the position.
    if (epoch !== this.#log.epoch) return 'epoch-changed'
    if (offset < keptAfter) return 'history-expired'
    if (offset < this.#completeAfter) return 'broker-lost'
    const doubted = this.#doubt.reasonAt(position, isState)
    if (doubted !== undefined) return doubted
    if (offset === 0 || this.isSame(position)) return undefined
    return this.#log.fingerprintAt(offset) === 0 ? 'history-expired' : 'broker-lost'
  }

  /** Whether the log is known to have at this position what the position says. */
  isSame({ epoch, offset, fingerprint }: Position): boolean {
    return epoch === this.#log.epoch && fingerprint !== 0 && fingerprint === this.#log.fingerprintAt(offset)
  }

  /**
   * Why messages of the last time may be missing.
   * @param isAsked Whether a message of this time is asked for, Unix time in milliseconds.
   * @param droppedTimeMs Log time of the newest dropped message.
   */
  gapOfTime(isAsked: (timeMs: number) => boolean, droppedTimeMs: number): GapReason | undefined {
    if (isAsked(droppedTimeMs)) return 'history-expired'
    if (isAsked(this.#interruptedAtMs)) return 'broker-lost'
    return isAsked(this.#doubt.timeMs) ? this.#doubt.reason : undefined
  }

  /** Why wanted messages between these offsets are missing although the log has been read there. */
  gapBetween(after: number, upTo: number, wants: Wants): GapReason | undefined {
    return this.refusals.has(after, upTo, wants) ? 'refused' : undefined
  }
}

/** A message that has an offset, and is not in the log: it was refused. */
interface Refusal {
  readonly offset: number
  /** Its key, or a pattern of the keys that it may have. */
  readonly pattern: string
}

/** With more of them, reads across the oldest ones report a gap whatever their patterns. */
const MAX_REFUSALS = 1_000

class Refusals {
  /** In order of their offsets. */
  #refusals: Refusal[] = []
  /** Messages of any key may have been refused at or before this offset. */
  #refusedUpTo = 0

  /**
   * @param offset Greater than any before.
   * @param heldAfter Reads begin after this offset, or later.
   */
  add(offset: number, pattern: string, heldAfter: number): void {
    this.#refusals = [...this.#refusals.filter((refusal) => refusal.offset > heldAfter), { offset, pattern }]
    if (this.#refusals.length > MAX_REFUSALS) this.#refusedUpTo = this.#refusals.shift()?.offset ?? offset
  }

  /** Whether a message that is wanted may have been refused between these offsets. */
  has(after: number, upTo: number, isMatch: Wants): boolean {
    if (after < this.#refusedUpTo) return true
    const budget = { left: Number.POSITIVE_INFINITY }
    return this.#refusals.some(
      ({ offset, pattern }) =>
        offset > after && offset <= upTo && (pattern === '#' || isMatch(pattern, Number.POSITIVE_INFINITY, budget)),
    )
  }
}

/** `broker-lost`: messages went to another broker, at the same address. */
export type DoubtReason = Extract<GapReason, 'rules-differ' | 'broker-lost'>

/**
 * Where a log may lack what nodes with other rules have published: it is in no log, and has no offset. Outlives the
 * restarts of the log.
 */
export class LogDoubt {
  /** There are such nodes now. */
  isOpen = false
  upTo: LogPlace | undefined
  reason: DoubtReason = 'rules-differ'
  #timeMs = 0

  /** When there were such nodes last, Unix time in milliseconds. */
  get timeMs(): number {
    return this.isOpen ? Number.POSITIVE_INFINITY : this.#timeMs
  }

  /** Whoever stands at this place or before may have missed something. Returns whether that is new. */
  extend({ epoch, offset }: LogPlace, timeMs: number, reason: DoubtReason): boolean {
    if (this.upTo?.epoch === epoch && offset <= this.upTo.offset) return false
    this.upTo = { epoch, offset }
    this.reason = reason
    this.#timeMs = timeMs
    return true
  }

  /** @param isState As for `LogGaps.gapOf`: nodes with other rules change no state. */
  reasonAt({ epoch, offset }: LogPlace, isState: boolean): DoubtReason | undefined {
    if (this.isOpen && !isState) return 'rules-differ'
    return epoch === this.upTo?.epoch && offset <= this.upTo.offset ? this.reason : undefined
  }
}
