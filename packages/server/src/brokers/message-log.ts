/** Bounds of a {@link MessageLog}. */
export interface MessageLogOptions {
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
}

/** Payloads share allocations of this size: an allocation per message would cost more than the rest of a publish. */
const SEGMENT_BYTES = 1_048_576
/** Messages of a segment, for which it has room from the start: payloads of 128 bytes fill it. */
const SEGMENT_MESSAGES = 8_192

/** A run of messages whose payloads stand in one allocation, one after the other. Only ever appended to. */
class Segment {
  readonly firstOffset: number
  readonly #bytes: Uint8Array
  readonly #keys = new Array<string>(SEGMENT_MESSAGES)
  /** Where each payload ends; it begins where the one before ends. */
  readonly #ends = new Uint32Array(SEGMENT_MESSAGES)
  readonly #binary = new Uint8Array(SEGMENT_MESSAGES)
  #count = 0
  #usedBytes = 0

  constructor(firstOffset: number, capacityBytes: number) {
    this.firstOffset = firstOffset
    // Not filled with zeros: nobody sees more of it than what was written.
    this.#bytes = new Uint8Array(Buffer.allocUnsafeSlow(capacityBytes).buffer)
  }

  get count(): number {
    return this.#count
  }

  hasRoomFor(byteCount: number): boolean {
    return this.#count < SEGMENT_MESSAGES && this.#usedBytes + byteCount <= this.#bytes.length
  }

  append(key: string, payload: Uint8Array, isBinary: boolean): void {
    this.#bytes.set(payload, this.#usedBytes)
    this.#usedBytes += payload.length
    this.#keys[this.#count] = key
    this.#binary[this.#count] = Number(isBinary)
    this.#ends[this.#count] = this.#usedBytes
    this.#count++
  }

  keyAt(index: number): string {
    return this.#keys[index] ?? ''
  }

  byteCountAt(index: number): number {
    return this.#endOf(index) - this.#endOf(index - 1)
  }

  messageAt(index: number): LoggedMessage {
    return {
      offset: this.firstOffset + index,
      key: this.keyAt(index),
      payload: this.#bytes.subarray(this.#endOf(index - 1), this.#endOf(index)),
      isBinary: this.#binary[index] === 1,
    }
  }

  #endOf(index: number): number {
    return this.#ends[index] ?? 0
  }
}

/**
 * The newest messages of a broker, in order, bounded in number and in bytes: offsets are counted from 1 without a gap,
 * and the oldest messages go first. Memory is held in allocations of 1 MiB, freed when all their messages are gone.
 */
export class MessageLog {
  readonly #maxMessages: number
  readonly #maxBytes: number
  readonly #segmentBytes: number
  #segments: Segment[] = []
  #firstOffset = 1
  #lastOffset = 0
  #byteCount = 0

  constructor(options: MessageLogOptions) {
    this.#maxMessages = options.maxMessages
    this.#maxBytes = options.maxBytes
    this.#segmentBytes = Math.min(SEGMENT_BYTES, options.maxBytes)
  }

  /** Offset of the oldest message that is held; one more than {@link lastOffset} when none is. */
  get firstOffset(): number {
    return this.#firstOffset
  }

  /** Offset of the newest message; 0 before the first. */
  get lastOffset(): number {
    return this.#lastOffset
  }

  /** Bytes of payload that are held. */
  get byteCount(): number {
    return this.#byteCount
  }

  /**
   * Appends a message and returns its offset. A message larger than the whole log takes its offset and is gone at once.
   * @param payload Copied.
   */
  append(key: string, payload: Uint8Array, isBinary: boolean): number {
    let segment = this.#segments.at(-1)
    if (segment === undefined || !segment.hasRoomFor(payload.length)) {
      segment = new Segment(this.#lastOffset + 1, Math.max(this.#segmentBytes, payload.length))
      this.#segments.push(segment)
    }
    segment.append(key, payload, isBinary)
    this.#lastOffset++
    this.#byteCount += payload.length
    while (this.#lastOffset - this.#firstOffset >= this.#maxMessages || this.#byteCount > this.#maxBytes) {
      this.#dropOldest()
    }
    return this.#lastOffset
  }

  /**
   * The messages after an offset whose key is wanted, oldest first.
   * Cost: O(messages after the offset), one call of `wants` each.
   */
  after(offset: number, wants: (key: string) => boolean): LoggedMessage[] {
    const messages: LoggedMessage[] = []
    const from = Math.max(offset + 1, this.#firstOffset)
    for (const segment of this.#segments) {
      for (let index = Math.max(0, from - segment.firstOffset); index < segment.count; index++) {
        if (wants(segment.keyAt(index))) messages.push(segment.messageAt(index))
      }
    }
    return messages
  }

  /** The newest `count` messages whose key is wanted, oldest first. Cost: as far back as needed. */
  newest(count: number, wants: (key: string) => boolean): LoggedMessage[] {
    const messages: LoggedMessage[] = []
    for (let at = this.#segments.length - 1; at >= 0 && messages.length < count; at--) {
      const segment = this.#segments[at]
      if (segment === undefined) break
      const oldest = Math.max(0, this.#firstOffset - segment.firstOffset)
      for (let index = segment.count - 1; index >= oldest && messages.length < count; index--) {
        if (wants(segment.keyAt(index))) messages.push(segment.messageAt(index))
      }
    }
    return messages.reverse()
  }

  #dropOldest(): void {
    const segment = this.#segments[0]
    if (segment === undefined) return
    this.#byteCount -= segment.byteCountAt(this.#firstOffset - segment.firstOffset)
    this.#firstOffset++
    if (this.#firstOffset === segment.firstOffset + segment.count) this.#segments.shift()
  }
}
