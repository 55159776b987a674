import { crc32 } from 'node:zlib'
import type { StreamPlace, StreamStatus } from 'webmq-client/protocol'
import { grownBytes } from '../base/grown-bytes.js'
import { type SharedState, sharedStateOf, tookMark } from './shared-state.js'

/** Pieces that are kept apart before they become one: many small ones would take more memory than their text. */
const MAX_PIECES = 512
/** Memory of a fold beside its text. */
const OVERHEAD_BYTES = 1_024
const PRODUCER_BYTES = 256
const NO_BYTES = Buffer.alloc(0)

/** What was appended at once. */
export type Piece = string | Uint8Array

/**
 * The last stream of a key, folded from the messages of the key in log order. It is pure: whoever folds the same messages
 * has the same stream. A second copy of a message changes nothing.
 */
export class StreamFold {
  /** Its id; `undefined`: the key has no stream. */
  stream: string | undefined
  /** Number of its last message. */
  sequence = -1
  /** `delete`: it has no content any more, and counts as none. */
  status: StreamStatus | 'delete' = 'end'
  /** As given to its start. */
  meta: unknown
  /** As given to its end. */
  result: unknown
  /** Messages of it are missing: the log has no longer got them. */
  isCut = false
  appendCount = 0
  /** Bytes that the text takes as a payload, at most. */
  byteCount = 0
  /** Of a stream with many writers and without a lease. */
  shared: SharedState | undefined
  /** Its text was freed: the log has it. */
  isForgotten = false
  #texts: string[] = []
  /** Its first `byteCount` bytes, if it is a stream of bytes. */
  #bytes: Buffer | undefined
  #otherBytes = 0

  get isActive(): boolean {
    return this.stream !== undefined && this.status === 'active'
  }

  /** Estimated memory. */
  get keptBytes(): number {
    const sharedBytes = this.shared === undefined ? 0 : this.shared.producerCount * PRODUCER_BYTES
    return (this.isForgotten ? 0 : 2 * this.byteCount) + this.#otherBytes + sharedBytes + OVERHEAD_BYTES
  }

  /** The whole: a text, or bytes; `undefined` while nothing was appended. Shared: nobody may change it. */
  get whole(): Piece | undefined {
    if (this.#bytes !== undefined) return this.#bytes.subarray(0, this.byteCount)
    if (this.#texts.length > 1) this.#texts = [this.#texts.join('')]
    return this.#texts[0]
  }

  /**
   * Takes the next message of the log.
   * @param payload Parsed JSON, or bytes that stay; `undefined` for an empty one.
   * @returns Whether it changed the stream.
   */
  take({ stream, sequence, kind, mark }: StreamPlace, payload: unknown): boolean {
    if (kind === 'beat' && stream === this.stream) tookMark(this.shared, undefined, mark)
    if (kind === 'beat' || kind === 'text') return false
    if (kind === 'start') {
      if (this.isActive || stream === this.stream) return false
      this.#begin(stream, sequence, mark)
      this.meta = payload
      this.#otherBytes = jsonBytes(payload)
      return true
    }
    if (this.stream === undefined) {
      // The log begins within it.
      this.#begin(stream, sequence - 1, mark)
      this.isCut = true
    }
    if (stream !== this.stream || sequence <= this.sequence) return false
    if (!this.isActive && (kind !== 'delete' || this.status === 'delete')) return false
    this.isCut ||= sequence > this.sequence + 1
    this.sequence = sequence
    tookMark(this.shared, { sequence, isEnd: kind !== 'append' }, mark)
    if (kind === 'append') this.#append(payload)
    else if (kind === 'close') {
      if (payload !== undefined) this.#append(payload)
      this.status = 'end'
    } else if (kind === 'delete') {
      this.#begin(stream, sequence, undefined)
      this.status = 'delete'
    } else {
      this.status = kind
      this.result = payload
      this.#otherBytes += jsonBytes(payload)
    }
    return true
  }

  /** Frees the text and `meta`; all that decides about messages stays. */
  forget(): void {
    this.isForgotten = true
    this.meta = undefined
    this.#texts = []
    this.#bytes = undefined
    this.#otherBytes = 0
  }

  #begin(stream: string, sequence: number, mark: string | undefined): void {
    this.stream = stream
    this.sequence = sequence
    this.status = 'active'
    this.meta = undefined
    this.result = undefined
    this.isCut = false
    this.appendCount = 0
    this.byteCount = 0
    this.shared = sharedStateOf(sequence, mark)
    this.isForgotten = false
    this.#texts = []
    this.#bytes = undefined
    this.#otherBytes = 0
  }

  #append(payload: unknown): void {
    this.appendCount++
    const isBytes = payload instanceof Uint8Array
    const isOther = isBytes ? this.#texts.length > 0 : this.#bytes !== undefined
    // Another program may have written it.
    if (isOther || !(isBytes || typeof payload === 'string')) {
      this.isCut = true
      return
    }
    if (isBytes) {
      if (this.shared !== undefined) this.shared.checksum = crc32(payload, this.shared.checksum)
      if (!this.isForgotten) this.#bytes = grownBytes(this.#bytes ?? NO_BYTES, this.byteCount, payload)
      this.byteCount += payload.length
      return
    }
    this.byteCount += jsonBytes(payload)
    if (this.isForgotten) return
    this.#texts.push(payload)
    if (this.#texts.length >= MAX_PIECES) this.#texts = [this.#texts.join('')]
  }
}

function jsonBytes(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value))
}
