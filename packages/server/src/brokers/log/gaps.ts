import type { GapReason } from 'webmq-client/protocol'
import type { Position } from '../../ports/broker.js'
import { LostOffsets } from './lost-offsets.js'
import { Refusals } from './refusals.js'
import type { Wants } from './segmented-log.js'

/** Where a log of one epoch may lack messages, and why: all its reads take the reason of a gap from here. */
export class LogGaps {
  readonly epoch: string
  #epochBeganAt = 0
  /** Messages may be missing at or before this offset: those logged up to `#interruptedAtMs`. */
  #completeAfter: number
  #interruptedAtMs = 0
  readonly #lost = new LostOffsets()
  readonly #refusals = new Refusals()

  /** @param startOffset The first message follows this offset. */
  constructor(epoch: string, startOffset: number) {
    this.epoch = epoch
    this.#completeAfter = startOffset
  }

  /** Messages up to this offset are of earlier epochs. */
  get epochBeganAt(): number {
    return this.#epochBeganAt
  }

  /** See {@link HistoryLog.began}. */
  began(offset: number): void {
    this.#epochBeganAt = offset
  }

  /** Messages may be missing at or before this offset, which were logged up to this time. */
  interrupted(offset: number, timeMs: number): void {
    this.#completeAfter = offset
    this.#interruptedAtMs = timeMs
  }

  /** Messages between these offsets were given out and then lost. */
  lost(after: number, before: number): void {
    this.#lost.add(after, before)
  }

  /** See {@link Refusals.add}. */
  refused(offset: number, pattern: string, heldAfter: number): void {
    this.#refusals.add(offset, pattern, heldAfter)
  }

  /**
   * Why messages after this position may be missing.
   * @param keptAfter Everything after this offset is kept.
   */
  gapOf({ epoch, offset }: Position, keptAfter: number): GapReason | undefined {
    // An earlier epoch is older than this whole log, and its log may have lost messages after the position.
    if (epoch !== this.epoch) return 'epoch-changed'
    if (offset < keptAfter) return 'history-expired'
    if (offset < this.#completeAfter) return 'broker-lost'
    return this.#lost.has(offset) ? 'history-expired' : undefined
  }

  /**
   * Why messages of the last time may be missing.
   * @param isAsked Whether a message of this time is asked for, Unix time in milliseconds.
   * @param droppedTimeMs Log time of the newest dropped message.
   */
  gapOfTime(isAsked: (timeMs: number) => boolean, droppedTimeMs: number): GapReason | undefined {
    if (isAsked(droppedTimeMs)) return 'history-expired'
    return isAsked(this.#interruptedAtMs) ? 'broker-lost' : undefined
  }

  /** Why wanted messages between these offsets are missing although the log has been read there. */
  gapBetween(after: number, upTo: number, wants: Wants): GapReason | undefined {
    return this.#refusals.has(after, upTo, wants) ? 'refused' : undefined
  }
}
