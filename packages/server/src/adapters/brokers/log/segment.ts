import type { MessageContent } from '../../../kernel/ports/messages.js'
import { KeyFilter } from './key-filter.js'
import type { StepBudget } from './pattern-matcher.js'

export interface LoggedMessage {
  readonly offset: number
  readonly fingerprint: number
  readonly key: string
  /** A view of the log's memory, which is never overwritten once it was seen: always valid. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** When it was logged, Unix time in milliseconds. Never decreases from message to message. */
  readonly timeMs: number
  /** Encoded; a view as `payload` is. Absent when it has none. */
  readonly attributes: Uint8Array | undefined
}

/** Most messages of a segment: with payloads of 128 bytes both limits are met. */
const SEGMENT_MESSAGES = 8_192
/** Room for messages at first; it doubles. Room for all would take as long as 16 payloads of 16 KiB, of which 64 fit. */
const FIRST_MESSAGES = 64
/** Of the filter of its keys: 8 KiB. With as many keys as messages it takes one of eight others for one of them. */
const FILTER_BITS = 2 ** 16
/** Steps to add a key to the filter. */
const FILTER_STEPS = 2

/** Consecutive messages whose payloads share one allocation. Append-only. */
export class Segment {
  readonly #bytes: Uint8Array
  /** Behind the last message, those of messages before {@link clear}. */
  readonly #keys: string[] = []
  #offsets = new Float64Array(FIRST_MESSAGES)
  #fingerprints = new Uint32Array(FIRST_MESSAGES)
  #timesMs = new Float64Array(FIRST_MESSAGES)
  /** End of each payload and the attributes behind it; the next one begins there. */
  #ends = new Uint32Array(FIRST_MESSAGES)
  #binary = new Uint8Array(FIRST_MESSAGES)
  /** Absent while no message has attributes: they cost nobody else memory. */
  #attributesLengths: Uint16Array | undefined
  /** Made by the first read of one key. */
  #filter: KeyFilter | undefined
  /** Messages whose keys it has. */
  #filteredCount = 0
  count = 0
  #usedBytes = 0
  #wasSeen = false

  constructor(capacityBytes: number) {
    // Not zeroed: only written bytes are ever read.
    this.#bytes = new Uint8Array(Buffer.allocUnsafeSlow(capacityBytes).buffer)
  }

  get capacityBytes(): number {
    return this.#bytes.length
  }

  /** Forgets all messages. Returns `false` if somebody may have a view of one: use another segment. */
  clear(): boolean {
    if (this.#wasSeen) return false
    this.count = 0
    this.#usedBytes = 0
    this.#attributesLengths = undefined
    this.#filter = undefined
    this.#filteredCount = 0
    return true
  }

  hasRoomFor(byteCount: number): boolean {
    return this.count < SEGMENT_MESSAGES && this.#usedBytes + byteCount <= this.#bytes.length
  }

  append(message: MessageContent, offset: number, fingerprint: number, timeMs: number, attributes?: Uint8Array): void {
    const { key, payload, isBinary } = message
    const at = this.count
    if (at === this.#ends.length) this.#grow()
    this.#bytes.set(payload, this.#usedBytes)
    this.#usedBytes += payload.length
    if (attributes !== undefined) this.#appendAttributes(at, attributes)
    this.#offsets[at] = offset
    this.#fingerprints[at] = fingerprint
    this.#timesMs[at] = timeMs
    this.#keys[at] = key
    this.#binary[at] = Number(isBinary)
    this.#ends[at] = this.#usedBytes
    this.count++
  }

  /** `false` when it is sure that it has no message of this key. */
  mayHave(key: string, budget: StepBudget): boolean {
    this.#filter ??= new KeyFilter(FILTER_BITS)
    budget.left -= (this.count - this.#filteredCount) * FILTER_STEPS
    for (; this.#filteredCount < this.count; this.#filteredCount++) this.#filter.add(this.keyAt(this.#filteredCount))
    return this.#filter.mayHave(key)
  }

  keyAt(index: number): string {
    return this.#keys[index] ?? ''
  }

  offsetAt(index: number): number {
    return this.#offsets[index] ?? 0
  }

  fingerprintAt(index: number): number {
    return this.#fingerprints[index] ?? 0
  }

  timeAt(index: number): number {
    return this.#timesMs[index] ?? 0
  }

  byteCountAt(index: number): number {
    return this.#endOf(index) - this.#endOf(index - 1)
  }

  messageAt(index: number): LoggedMessage {
    this.#wasSeen = true
    const end = this.#endOf(index)
    const payloadEnd = end - (this.#attributesLengths?.[index] ?? 0)
    return {
      offset: this.offsetAt(index),
      fingerprint: this.fingerprintAt(index),
      key: this.keyAt(index),
      payload: this.#bytes.subarray(this.#endOf(index - 1), payloadEnd),
      isBinary: this.#binary[index] === 1,
      timeMs: this.timeAt(index),
      attributes: this.attributesAt(index),
    }
  }

  /** Encoded; a view that is valid until the segment is cleared. */
  attributesAt(index: number): Uint8Array | undefined {
    const length = this.#attributesLengths?.[index] ?? 0
    const end = this.#endOf(index)
    return length === 0 ? undefined : this.#bytes.subarray(end - length, end)
  }

  /** Index of the first message that `isIt` is true for. It MUST be true for all later messages too. */
  firstIndex(isIt: (index: number) => boolean): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isIt(middle)) high = middle
      else low = middle + 1
    }
    return low
  }

  #grow(): void {
    const length = Math.min(this.#ends.length * 2, SEGMENT_MESSAGES)
    this.#offsets = grown(this.#offsets, new Float64Array(length))
    this.#fingerprints = grown(this.#fingerprints, new Uint32Array(length))
    this.#timesMs = grown(this.#timesMs, new Float64Array(length))
    this.#ends = grown(this.#ends, new Uint32Array(length))
    this.#binary = grown(this.#binary, new Uint8Array(length))
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

function grown<Numbers extends Float64Array | Uint32Array | Uint8Array>(numbers: Numbers, larger: Numbers): Numbers {
  larger.set(numbers)
  return larger
}
