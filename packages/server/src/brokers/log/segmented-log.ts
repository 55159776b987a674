/** Bounds of a {@link SegmentedLog}. */
export interface SegmentedLogOptions {
  /** Messages that are kept. */
  readonly maxMessages: number
  /** Bytes of payload that are kept, whichever limit comes first. */
  readonly maxBytes: number
}

/** A message that the log holds. */
export interface LoggedMessage {
  readonly offset: number
  readonly key: string
  /** A view of the log's own bytes, which are never written again: valid for as long as it is held. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** When it was logged, Unix time in milliseconds; never before that of the message before. */
  readonly timeMs: number
}

/** Says whether a message is wanted. */
export type Wants = (key: string, timeMs: number) => boolean

/** What {@link SegmentedLog.after} has found. */
export interface LogPage {
  readonly messages: LoggedMessage[]
  /** Place up to which they are complete. */
  readonly endOffset: number
  /** Whether the log goes on after that. */
  readonly isPartial: boolean
}

/** Payloads share allocations of this size: an allocation per message would cost more than the rest of a publish. */
const SEGMENT_BYTES = 1_048_576
/** Messages of a segment, for which it has room from the start: payloads of 128 bytes fill it. */
const SEGMENT_MESSAGES = 8_192
/** Messages that one read looks at, so that a pattern that few of them match holds nobody up: about a millisecond. */
const MAX_LOOKED_AT = 50_000

/** A run of messages whose payloads stand in one allocation, one after the other. Only ever appended to. */
class Segment {
  readonly #bytes: Uint8Array
  readonly #keys = new Array<string>(SEGMENT_MESSAGES)
  readonly #offsets = new Float64Array(SEGMENT_MESSAGES)
  readonly #timesMs = new Float64Array(SEGMENT_MESSAGES)
  /** Where each payload ends; it begins where the one before ends. */
  readonly #ends = new Uint32Array(SEGMENT_MESSAGES)
  readonly #binary = new Uint8Array(SEGMENT_MESSAGES)
  #count = 0
  #usedBytes = 0

  constructor(capacityBytes: number) {
    // Not filled with zeros: nobody sees more of it than what was written.
    this.#bytes = new Uint8Array(Buffer.allocUnsafeSlow(capacityBytes).buffer)
  }

  get count(): number {
    return this.#count
  }

  hasRoomFor(byteCount: number): boolean {
    return this.#count < SEGMENT_MESSAGES && this.#usedBytes + byteCount <= this.#bytes.length
  }

  append(offset: number, key: string, payload: Uint8Array, isBinary: boolean, timeMs: number): void {
    const at = this.#count
    this.#bytes.set(payload, this.#usedBytes)
    this.#usedBytes += payload.length
    this.#offsets[at] = offset
    this.#timesMs[at] = timeMs
    this.#keys[at] = key
    this.#binary[at] = Number(isBinary)
    this.#ends[at] = this.#usedBytes
    this.#count++
  }

  keyAt(index: number): string {
    return this.#keys[index] ?? ''
  }

  offsetAt(index: number): number {
    return this.#offsets[index] ?? 0
  }

  timeAt(index: number): number {
    return this.#timesMs[index] ?? 0
  }

  byteCountAt(index: number): number {
    return this.#endOf(index) - this.#endOf(index - 1)
  }

  messageAt(index: number): LoggedMessage {
    return {
      offset: this.offsetAt(index),
      key: this.keyAt(index),
      payload: this.#bytes.subarray(this.#endOf(index - 1), this.#endOf(index)),
      isBinary: this.#binary[index] === 1,
      timeMs: this.timeAt(index),
    }
  }

  /** Index of the first message for which it is true; it stays true for all that come later. */
  firstIndex(isIt: (index: number) => boolean): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isIt(middle)) high = middle
      else low = middle + 1
    }
    return low
  }

  #endOf(index: number): number {
    return this.#ends[index] ?? 0
  }
}

/**
 * The newest messages of a log, in order, bounded in number and in bytes: offsets grow, and the oldest messages go first. Memory is
 * held in allocations of 1 MiB, freed when all their messages are gone.
 */
export class SegmentedLog {
  readonly #maxMessages: number
  readonly #maxBytes: number
  readonly #segmentBytes: number
  #segments: Segment[] = []
  /** Messages of the first segment that are gone. */
  #goneCount = 0
  #count = 0
  #byteCount = 0
  #heldAfter: number
  #lastOffset: number
  #lastTimeMs = 0
  #goneTimeMs = 0

  /** @param startOffset Place that the first message comes after. */
  constructor(options: SegmentedLogOptions, startOffset = 0) {
    this.#maxMessages = options.maxMessages
    this.#maxBytes = options.maxBytes
    this.#segmentBytes = Math.min(SEGMENT_BYTES, options.maxBytes)
    this.#heldAfter = startOffset
    this.#lastOffset = startOffset
  }

  /** Messages that are held. */
  get count(): number {
    return this.#count
  }

  /** Bytes of payload that are held. */
  get byteCount(): number {
    return this.#byteCount
  }

  /** Everything that was appended after this place is held. */
  get heldAfter(): number {
    return this.#heldAfter
  }

  /** The last offset that was given to a message or skipped; the start before the first. */
  get lastOffset(): number {
    return this.#lastOffset
  }

  /** When the newest message was logged that is no longer held; 0 before there is one. */
  get goneTimeMs(): number {
    return this.#goneTimeMs
  }

  /**
   * Appends a message. One that is larger than the whole log is gone at once.
   * @param offset Greater than any before.
   * @param payload Copied.
   */
  append(offset: number, key: string, payload: Uint8Array, isBinary: boolean, timeMs: number): void {
    let segment = this.#segments.at(-1)
    if (segment === undefined || !segment.hasRoomFor(payload.length)) {
      segment = new Segment(Math.max(this.#segmentBytes, payload.length))
      this.#segments.push(segment)
    }
    // Clocks are set back now and then; a log is not.
    if (timeMs > this.#lastTimeMs) this.#lastTimeMs = timeMs
    segment.append(offset, key, payload, isBinary, this.#lastTimeMs)
    this.#lastOffset = offset
    this.#count++
    this.#byteCount += payload.length
    while (this.#count > this.#maxMessages || this.#byteCount > this.#maxBytes) this.#dropOldest()
  }

  /** Leaves the next offset without a message. */
  skip(): void {
    this.#lastOffset++
  }

  /** Lets go of what was logged before this time. */
  dropBefore(timeMs: number): void {
    while (this.#count > 0 && (this.#segments[0]?.timeAt(this.#goneCount) ?? timeMs) < timeMs) this.#dropOldest()
  }

  /**
   * The messages after a place that are wanted, oldest first, `limit` of them at most.
   * Cost: O(messages looked at), 50,000 at most, one call of `wants` each.
   */
  after(offset: number, wants: Wants, limit: number): LogPage {
    const messages: LoggedMessage[] = []
    let leftCount = MAX_LOOKED_AT
    for (let at = this.#segmentAfter(offset); at < this.#segments.length; at++) {
      const segment = this.#segments[at] as Segment
      const first = Math.max(
        at === 0 ? this.#goneCount : 0,
        segment.firstIndex((index) => segment.offsetAt(index) > offset),
      )
      for (let index = first; index < segment.count; index++) {
        if (messages.length >= limit || leftCount-- === 0) {
          const endOffset = index === 0 ? this.#endOf(at - 1) : segment.offsetAt(index - 1)
          return { messages, endOffset: Math.max(endOffset, offset), isPartial: true }
        }
        if (wants(segment.keyAt(index), segment.timeAt(index))) {
          messages.push(segment.messageAt(index))
        }
      }
    }
    return { messages, endOffset: this.#lastOffset, isPartial: false }
  }

  /**
   * The place that the newest `count` wanted messages come after, not before `floor`.
   * Cost: as far back as needed, one call of `wants` per message.
   */
  placeBeforeNewest(count: number, wants: Wants, floor: number): number {
    let place = this.#lastOffset
    let leftCount = count
    for (let at = this.#segments.length - 1; at >= 0 && leftCount > 0; at--) {
      const segment = this.#segments[at] as Segment
      const oldest = at === 0 ? this.#goneCount : 0
      for (let index = segment.count - 1; index >= oldest && leftCount > 0; index--) {
        const offset = segment.offsetAt(index)
        if (offset <= floor) return Math.max(floor, place)
        if (!wants(segment.keyAt(index), segment.timeAt(index))) continue
        place = index === 0 ? this.#endOf(at - 1) : segment.offsetAt(index - 1)
        leftCount--
      }
    }
    return Math.max(floor, place)
  }

  /** The place that everything comes after which was logged at this time or later. */
  placeBefore(timeMs: number): number {
    for (let at = 0; at < this.#segments.length; at++) {
      const segment = this.#segments[at] as Segment
      const index = segment.firstIndex((index) => segment.timeAt(index) >= timeMs)
      if (index === segment.count) continue
      const place = index === 0 ? this.#endOf(at - 1) : segment.offsetAt(index - 1)
      return Math.max(this.#heldAfter, place)
    }
    return this.#lastOffset
  }

  /** The first segment that has something after the place. */
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

  /** Offset of the last message of a segment; of the one before the first, what is held begins after. */
  #endOf(at: number): number {
    const segment = this.#segments[at]
    return segment === undefined ? this.#heldAfter : segment.offsetAt(segment.count - 1)
  }

  #dropOldest(): void {
    const segment = this.#segments[0]
    if (segment === undefined) return
    this.#byteCount -= segment.byteCountAt(this.#goneCount)
    this.#heldAfter = segment.offsetAt(this.#goneCount)
    this.#goneTimeMs = segment.timeAt(this.#goneCount)
    this.#count--
    this.#goneCount++
    if (this.#goneCount < segment.count) return
    this.#segments.shift()
    this.#goneCount = 0
  }
}
