import type { Position } from '../../../kernel/ports/broker.js'
import type { MessageContent } from '../../../kernel/ports/messages.js'
import { FingerprintRing } from './fingerprint-ring.js'
import { KeyFilter } from './key-filter.js'
import type { StepBudget } from './pattern-matcher.js'
import { type LoggedMessage, Segment } from './segment.js'

export interface SegmentedLogOptions {
  readonly maxMessages: number
  /** Most bytes of payload and attributes to keep. */
  readonly maxBytes: number
}

/**
 * Whether a read wants a message. To find out may take steps of the budget.
 * @param segment Where the log has it, at `index`; absent when the log does not have it.
 */
export type Wants = (key: string, timeMs: number, budget: StepBudget, segment?: Segment, index?: number) => boolean

export interface Search {
  readonly upTo: number
  readonly wants: Wants
  /** Nothing but messages of this key is wanted. Segments without it are skipped. */
  readonly key?: string | undefined
}

export interface NewestFound {
  /** The offset before the oldest message found; `undefined` when none was found. */
  readonly before: number | undefined
  /** Messages that were not found. */
  readonly leftCount: number
  /** Nothing after this offset is left to look at; `floor` at the end of the search. */
  readonly lookedAfter: number
}

/** Payloads share allocations of this size: an allocation per message would cost more than the rest of a publish. */
const SEGMENT_BYTES = 1_048_576
/** Of the filter of keys of dropped messages: 128 KiB. Of 100,000 keys it takes one of ten others for one of them. */
const DROPPED_KEYS_BITS = 2 ** 20
/** Steps to look at a message: its key is rarely in a cache of the processor. */
const LOOK_STEPS = 8

/** Further steps for a message that a read returns: objects are created for it. */
const FOUND_STEPS = 8

/**
 * The newest messages of a log, in order of their offsets, bounded in number and bytes. The oldest are dropped first.
 * Allocations of 1 MiB hold the payloads; one is freed when all its messages are dropped.
 */
export class SegmentedLog {
  readonly #maxMessages: number
  readonly #maxBytes: number
  readonly #segmentBytes: number
  #segments: Segment[] = []
  /** The last that was dropped, to be filled again. A flood would drop more memory than the collector frees in time. */
  #spare: Segment | undefined
  /** Dropped messages of the first segment. */
  #droppedCount = 0
  count = 0
  /** Bytes of payload and attributes. */
  byteCount = 0
  /** The log has everything that was appended after this offset. */
  heldAfter: number
  /** The last offset that was used or skipped; at first the start offset. */
  lastOffset: number
  #lastTimeMs = 0
  /** Log time of the newest dropped message; 0 while none was dropped. */
  droppedTimeMs = 0
  /** The log has begun after this offset; what was before is unknown. */
  readonly startOffset: number
  readonly epoch: string
  readonly #droppedKeys = new KeyFilter(DROPPED_KEYS_BITS)
  /** Of the newest dropped messages. The last one stands before everything that is kept. */
  readonly #dropped = new FingerprintRing()
  /** Of the newest records that are no messages of this log. */
  readonly #skipped = new FingerprintRing()

  /**
   * @param startOffset The first message follows this offset.
   * @param startFingerprint Of what stands there; 0: unknown.
   */
  constructor(options: SegmentedLogOptions, epoch = '', startOffset = 0, startFingerprint = 0) {
    this.epoch = epoch
    this.#maxMessages = options.maxMessages
    this.#maxBytes = options.maxBytes
    this.#segmentBytes = Math.min(SEGMENT_BYTES, options.maxBytes)
    this.startOffset = startOffset
    this.heldAfter = startOffset
    this.lastOffset = startOffset
    this.#skipped.add(startOffset, startFingerprint)
  }

  /** When the oldest message was logged; 0 without messages. */
  get oldestTimeMs(): number {
    const [first] = this.#segments
    return first === undefined || this.count === 0 ? 0 : first.timeAt(this.#droppedCount)
  }

  /** Whether it may have dropped messages of this key; of any key, without one. */
  mayHaveDropped(key: string | undefined): boolean {
    return key === undefined ? this.heldAfter > this.startOffset : this.#droppedKeys.mayHave(key)
  }

  /**
   * Appends a message. A message larger than the whole log is dropped at once.
   * @param message Its payload is copied.
   * @param offset Greater than any before.
   * @param attributes Those of the message, encoded; copied.
   */
  append(message: MessageContent, offset: number, fingerprint: number, timeMs: number, attributes?: Uint8Array): void {
    const byteCount = message.payload.length + (attributes?.length ?? 0)
    let segment = this.#segments.at(-1)
    if (segment === undefined || !segment.hasRoomFor(byteCount)) {
      segment = this.#segmentFor(byteCount)
      this.#segments.push(segment)
    }
    // A clock may be set back; log times never decrease.
    if (timeMs > this.#lastTimeMs) this.#lastTimeMs = timeMs
    segment.append(message, offset, fingerprint, this.#lastTimeMs, attributes)
    this.lastOffset = offset
    this.count++
    this.byteCount += byteCount
    while (this.count > this.#maxMessages || this.byteCount > this.#maxBytes) this.#dropOldest()
  }

  /**
   * Skips the offsets up to this one, which is greater than any before.
   * @param fingerprint Of the record that stands there and is no message of this log; 0: none does.
   */
  skipTo(offset: number, fingerprint: number): void {
    this.lastOffset = offset
    if (fingerprint !== 0) this.#skipped.add(offset, fingerprint)
  }

  /**
   * Fingerprint of the newest record at or before this offset; 0 when it is unknown. Known are all messages that the log
   * holds, and the newest 65,536 of the others.
   */
  fingerprintAt(offset: number): number {
    const at = this.#segmentAfter(offset)
    const last = this.#segments[at]
    const count = last?.firstIndex((index) => last.offsetAt(index) > offset) ?? 0
    const segment = count > 0 ? last : this.#segments[at - 1]
    const index = (count > 0 ? count : (segment?.count ?? 0)) - 1
    const [messageAt, fingerprint] =
      segment === undefined
        ? [this.#dropped.offsetAt(offset), this.#dropped.fingerprintAt(offset)]
        : [segment.offsetAt(index), segment.fingerprintAt(index)]
    return this.#skipped.offsetAt(offset) > messageAt ? this.#skipped.fingerprintAt(offset) : fingerprint
  }

  positionAt(offset: number): Position {
    return { epoch: this.epoch, offset, fingerprint: this.fingerprintAt(offset) }
  }

  dropBefore(timeMs: number): void {
    while (this.count > 0 && (this.#segments[0]?.timeAt(this.#droppedCount) ?? timeMs) < timeMs) this.#dropOldest()
  }

  /**
   * Appends to `found` the wanted messages after an offset and up to another, oldest first, until `found` has `limit`
   * or the budget is used up. Looks at one message at least.
   * @returns `found` is complete up to this offset. It is `upTo` when, and only when, nothing is left to look at.
   */
  collect(
    { after, upTo, wants, limit, key }: Search & { readonly after: number; readonly limit: number },
    found: LoggedMessage[],
    budget: StepBudget,
  ): number {
    let end = after
    for (let at = this.#segmentAfter(after); at < this.#segments.length; at++) {
      const segment = this.#segments[at] as Segment
      if (!this.#mayHave(at, key, budget)) {
        end = this.#endOf(at)
        if (end >= upTo) return upTo
        if (budget.left <= 0) return end
        continue
      }
      const first = Math.max(
        at === 0 ? this.#droppedCount : 0,
        segment.firstIndex((index) => segment.offsetAt(index) > after),
      )
      for (let index = first; index < segment.count; index++) {
        const offset = segment.offsetAt(index)
        if (offset > upTo) return upTo
        if (found.length >= limit || (budget.left <= 0 && end > after)) return end
        budget.left -= LOOK_STEPS
        end = offset
        if (!wants(segment.keyAt(index), segment.timeAt(index), budget, segment, index)) continue
        budget.left -= FOUND_STEPS
        found.push(segment.messageAt(index))
      }
    }
    return upTo
  }

  /**
   * Looks for the newest `count` wanted messages after `floor` and up to `upTo`, newest first, until the budget is used
   * up. Looks at one message at least.
   */
  newest(
    { floor, upTo, wants, count, key }: Search & { readonly floor: number; readonly count: number },
    budget: StepBudget,
  ): NewestFound {
    let before: number | undefined
    let lookedAfter = upTo
    let leftCount = count
    for (let at = Math.min(this.#segmentAfter(upTo), this.#segments.length - 1); at >= 0; at--) {
      const segment = this.#segments[at] as Segment
      if (!this.#mayHave(at, key, budget)) {
        lookedAfter = Math.max(floor, this.#endOf(at - 1))
        if (budget.left <= 0) return { before, leftCount, lookedAfter }
        continue
      }
      const oldest = at === 0 ? this.#droppedCount : 0
      const end = segment.firstIndex((index) => segment.offsetAt(index) > upTo)
      for (let index = end - 1; index >= oldest; index--) {
        if (segment.offsetAt(index) <= floor || leftCount === 0) return { before, leftCount, lookedAfter: floor }
        if (budget.left <= 0 && lookedAfter < upTo) return { before, leftCount, lookedAfter }
        budget.left -= LOOK_STEPS
        lookedAfter = index === 0 ? this.#endOf(at - 1) : segment.offsetAt(index - 1)
        if (!wants(segment.keyAt(index), segment.timeAt(index), budget, segment, index)) continue
        before = lookedAfter
        leftCount--
      }
    }
    return { before, leftCount, lookedAfter: floor }
  }

  /** The offset before the first message that was logged at this time or later. */
  offsetBefore(timeMs: number): number {
    for (let at = 0; at < this.#segments.length; at++) {
      const segment = this.#segments[at] as Segment
      const index = segment.firstIndex((index) => segment.timeAt(index) >= timeMs)
      if (index === segment.count) continue
      const before = index === 0 ? this.#endOf(at - 1) : segment.offsetAt(index - 1)
      return Math.max(this.heldAfter, before)
    }
    return this.lastOffset
  }

  #mayHave(at: number, key: string | undefined, budget: StepBudget): boolean {
    return key === undefined || this.#segments[at]?.mayHave(key, budget) !== false
  }

  #segmentAfter(offset: number): number {
    let low = 0
    let high = this.#segments.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#endOf(middle) > offset) high = middle
      else low = middle + 1
    }
    return low
  }

  /** Offset of the last message of a segment; before the first segment, the offset that the log begins after. */
  #endOf(at: number): number {
    const segment = this.#segments[at]
    return segment === undefined ? this.heldAfter : segment.offsetAt(segment.count - 1)
  }

  #segmentFor(byteCount: number): Segment {
    const spare = this.#spare
    this.#spare = undefined
    return spare?.hasRoomFor(byteCount) === true ? spare : new Segment(Math.max(this.#segmentBytes, byteCount))
  }

  #dropOldest(): void {
    const segment = this.#segments[0]
    if (segment === undefined) return
    this.byteCount -= segment.byteCountAt(this.#droppedCount)
    this.heldAfter = segment.offsetAt(this.#droppedCount)
    this.#dropped.add(this.heldAfter, segment.fingerprintAt(this.#droppedCount))
    this.droppedTimeMs = segment.timeAt(this.#droppedCount)
    this.#droppedKeys.add(segment.keyAt(this.#droppedCount))
    this.count--
    this.#droppedCount++
    if (this.#droppedCount < segment.count) return
    this.#segments.shift()
    this.#droppedCount = 0
    this.#spare = segment.capacityBytes === this.#segmentBytes && segment.clear() ? segment : undefined
  }
}
