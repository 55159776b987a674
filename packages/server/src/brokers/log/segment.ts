/** A message that the log holds. */
export interface LoggedMessage {
  readonly offset: number
  readonly key: string
  /** A view of the log's memory, which is never overwritten: always valid. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** When it was logged, Unix time in milliseconds. Never decreases from message to message. */
  readonly timeMs: number
  /** Encoded; a view as `payload` is. Absent when it has none. */
  readonly attributes: Uint8Array | undefined
}

/** Most messages of a segment: with payloads of 128 bytes both limits are met. */
const SEGMENT_MESSAGES = 8_192

/** Consecutive messages whose payloads share one allocation. Append-only. */
export class Segment {
  readonly #bytes: Uint8Array
  readonly #keys = new Array<string>(SEGMENT_MESSAGES)
  readonly #offsets = new Float64Array(SEGMENT_MESSAGES)
  readonly #timesMs = new Float64Array(SEGMENT_MESSAGES)
  /** End of each payload and the attributes behind it; the next one begins there. */
  readonly #ends = new Uint32Array(SEGMENT_MESSAGES)
  readonly #binary = new Uint8Array(SEGMENT_MESSAGES)
  /** Absent while no message has attributes: they cost nobody else memory. */
  #attributesLengths: Uint16Array | undefined
  #count = 0
  #usedBytes = 0

  constructor(capacityBytes: number) {
    // Not zeroed: only written bytes are ever read.
    this.#bytes = new Uint8Array(Buffer.allocUnsafeSlow(capacityBytes).buffer)
  }

  get count(): number {
    return this.#count
  }

  hasRoomFor(byteCount: number): boolean {
    return this.#count < SEGMENT_MESSAGES && this.#usedBytes + byteCount <= this.#bytes.length
  }

  append(
    offset: number,
    key: string,
    payload: Uint8Array,
    isBinary: boolean,
    timeMs: number,
    attributes: Uint8Array | undefined,
  ): void {
    const at = this.#count
    this.#bytes.set(payload, this.#usedBytes)
    this.#usedBytes += payload.length
    if (attributes !== undefined) this.#appendAttributes(at, attributes)
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
    const end = this.#endOf(index)
    const attributesLength = this.#attributesLengths?.[index] ?? 0
    const payloadEnd = end - attributesLength
    return {
      offset: this.offsetAt(index),
      key: this.keyAt(index),
      payload: this.#bytes.subarray(this.#endOf(index - 1), payloadEnd),
      isBinary: this.#binary[index] === 1,
      timeMs: this.timeAt(index),
      attributes: attributesLength === 0 ? undefined : this.#bytes.subarray(payloadEnd, end),
    }
  }

  /** Index of the first message that `isIt` is true for. It MUST be true for all later messages too. */
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

  #appendAttributes(at: number, attributes: Uint8Array): void {
    this.#attributesLengths ??= new Uint16Array(SEGMENT_MESSAGES)
    this.#attributesLengths[at] = attributes.length
    this.#bytes.set(attributes, this.#usedBytes)
    this.#usedBytes += attributes.length
  }

  #endOf(index: number): number {
    return this.#ends[index] ?? 0
  }
}
