import { crc32 } from 'node:zlib'
import { encodeJson, type StreamPlace, type StreamStatus, type StreamSummary } from 'webmq-client/protocol'
import type { FoldBytes } from './fold-bytes.js'
import { type SharedState, sharedAfter, sharedStateOf, tookMark } from './shared-state.js'

/** Pieces that are kept apart before they become one: many small ones would take more memory than their text. */
const MAX_PIECES = 512
/** Memory beside the text, that of its watch and its listen included. Measured: 3,029 bytes. */
const OVERHEAD_BYTES = 3_072
const PRODUCER_BYTES = 256

const NOT_ROLLED_UP = { sequence: -1, byteCount: 0 }

/** What was appended at once. */
export type Piece = string | Uint8Array

/** A stream up to some message, as the log has it in one. */
export interface RollUp
  extends Readonly<Pick<StreamFold, 'status' | 'meta' | 'result' | 'appendCount' | 'byteCount' | 'shared'>> {
  readonly whole: Piece | undefined
  /** The stream stood so at this offset of the log. */
  readonly upTo: number
}

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
  /** What the log has as a roll-up of it. */
  rolledUp = NOT_ROLLED_UP
  /** Of a stream with many writers and without a lease. */
  shared: SharedState | undefined
  /** Its text was freed: the log has it. */
  isForgotten = false
  /** Its content, for those who read it as bytes; counted, and freed with the text. */
  asBytes: FoldBytes | undefined
  #pieces: Piece[] = []
  /** Number of the last message in each piece. Each piece but the first is one message. */
  #ends: number[] = []
  /** Number of the first message in the first piece. */
  #first = 0
  /** A roll-up of this offset has begun it, and none of its messages came since: it may be over. */
  #begunBy: number | undefined
  /** No message is missing from this number on. */
  #isWholeFrom = 0
  #otherBytes = 0
  #payload: Uint8Array | undefined

  get isActive(): boolean {
    return this.stream !== undefined && this.status === 'active'
  }

  get summary(): StreamSummary {
    const { stream, sequence, status, meta, result, isCut } = this
    if (stream === undefined || status === 'delete') return {}
    return {
      stream,
      sequence,
      status,
      ...(meta === undefined ? undefined : { meta }),
      ...(result === undefined ? undefined : { result }),
      ...(isCut ? { isCut } : undefined),
    }
  }

  /** Estimated memory. */
  get keptBytes(): number {
    const sharedBytes = this.shared === undefined ? 0 : this.shared.producerCount * PRODUCER_BYTES
    const encodedBytes = (this.#payload?.length ?? 0) + (this.asBytes?.buffer.length ?? 0)
    const textBytes = (this.isForgotten ? 0 : 2 * this.byteCount) + encodedBytes
    return textBytes + this.#otherBytes + sharedBytes + OVERHEAD_BYTES
  }

  /** The whole: a text, or bytes; `undefined` while nothing was appended. Shared: nobody may change it. */
  get whole(): Piece | undefined {
    if (this.#pieces.length === 0) return undefined
    // A roll-up may still replace the first ones.
    if (this.isCut) return joined(this.#pieces)
    this.#join(this.#pieces.length)
    return this.#pieces[0]
  }

  /** The whole as the payload of one message: encoded once for all who read it. Shared. */
  get payload(): Uint8Array | undefined {
    const { whole } = this
    this.#payload ??= typeof whole === 'string' ? Buffer.from(encodeJson(whole)) : whole
    return this.#payload
  }

  /** Length of the whole: of a text in UTF-16 units. */
  get length(): number {
    return this.#pieces.reduce((length, piece) => length + piece.length, 0)
  }

  /** What follows the first so many units or bytes. Cost: O(pieces), and of what it gives. */
  after(length: number): Piece | undefined {
    const later: Piece[] = []
    let restLength = this.length - length
    for (const piece of this.#pieces.toReversed()) {
      if (restLength <= 0) break
      later.unshift(piece.slice(-restLength))
      restLength -= piece.length
    }
    return later.length === 0 ? undefined : joined(later)
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
    if (this.stream === undefined || (this.#begunBy !== undefined && stream !== this.stream)) {
      // The log begins within it.
      this.#begin(stream, sequence - 1, mark)
      this.isCut = true
    }
    if (stream !== this.stream || sequence <= this.sequence) return false
    if (!this.isActive && (kind !== 'delete' || this.status === 'delete')) return false
    if (sequence > this.sequence + 1) {
      this.isCut = true
      this.#isWholeFrom = sequence
    }
    this.sequence = sequence
    this.#begunBy = undefined
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

  /**
   * Takes a roll-up of the log, in place of the messages up to this number.
   * @returns Whether it changed the stream.
   */
  takeRollUp(stream: string, sequence: number, rollUp: RollUp): boolean {
    const isFirst = this.stream === undefined || (this.#begunBy !== undefined && rollUp.upTo > this.#begunBy)
    if (isFirst && stream !== this.stream) this.#begin(stream, -1, undefined)
    if (stream !== this.stream) return false
    if (isFirst) this.#begunBy = rollUp.upTo
    if (sequence > this.rolledUp.sequence) this.rolledUp = { sequence, byteCount: rollUp.byteCount }
    const isNewer = sequence > this.sequence
    // What came behind it stays, if it is whole and apart from the rest.
    const isApart = this.#first > sequence || (this.#ends[0] ?? 0) <= sequence
    const mends = this.isCut && !this.isForgotten && sequence >= this.#isWholeFrom - 1 && isApart
    if (!isNewer && !mends) return false
    const from = this.#ends.findIndex((end) => end > sequence)
    const later = from === -1 ? [] : this.#pieces.slice(from)
    const ends = from === -1 ? [] : this.#ends.slice(from)
    const first = from === 0 ? this.#first : (ends[0] ?? 0)
    if (later.length > 0 && typeof later[0] !== typeof (rollUp.whole ?? later[0])) return false
    this.#payload = undefined
    const { meta, whole, appendCount } = rollUp
    this.appendCount = appendCount + Math.max(0, this.sequence - sequence - (this.isActive ? 0 : 1))
    if (isNewer || sequence === this.sequence) {
      this.sequence = sequence
      this.status = rollUp.status
      this.result = rollUp.result
    }
    this.meta = meta
    this.shared = rollUp.shared && sharedAfter(rollUp.shared, sequence, isNewer ? undefined : this.shared, later)
    this.isCut = false
    this.isForgotten = false
    this.byteCount = later.reduce((sum, piece) => sum + pieceBytes(piece), rollUp.byteCount)
    this.#pieces = whole === undefined ? later : [whole, ...later]
    this.#ends = whole === undefined ? ends : [sequence, ...ends]
    this.#first = whole === undefined ? first : 0
    this.#otherBytes = jsonBytes(meta) + jsonBytes(this.result)
    return true
  }

  /** All of it, to be kept in the log. @param upTo Offset of the log up to which it was folded. */
  rollUp(upTo: number): RollUp {
    const { status, meta, result, appendCount, byteCount, shared, whole } = this
    return { status, meta, result, appendCount, byteCount, shared: shared && sharedAfter(shared), whole, upTo }
  }

  /** Frees the text and `meta`; all that decides about messages stays. */
  forget(): void {
    this.isForgotten = true
    this.meta = undefined
    this.#pieces = []
    this.#payload = undefined
    this.asBytes = undefined
    this.#ends = []
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
    this.rolledUp = NOT_ROLLED_UP
    this.#begunBy = undefined
    this.#isWholeFrom = sequence + 1
    this.shared = sharedStateOf(sequence, mark)
    this.isForgotten = false
    this.#pieces = []
    this.#payload = undefined
    this.asBytes = undefined
    this.#ends = []
    this.#otherBytes = 0
  }

  #append(payload: unknown): void {
    this.appendCount++
    const [first] = this.#pieces
    const isPiece = typeof payload === 'string' || payload instanceof Uint8Array
    // Another program may have written it.
    if (!isPiece || (first !== undefined && typeof first !== typeof payload)) {
      this.isCut = true
      this.#isWholeFrom = this.sequence + 1
      return
    }
    this.byteCount += pieceBytes(payload)
    if (this.shared !== undefined) this.shared.checksum = crc32(payload, this.shared.checksum)
    if (this.isForgotten) return
    this.#payload = undefined
    if (first === undefined) this.#first = this.sequence
    this.#pieces.push(payload)
    this.#ends.push(this.sequence)
    if (this.#pieces.length >= MAX_PIECES) this.#join(this.isCut ? MAX_PIECES / 2 : MAX_PIECES)
  }

  /** Makes one of the first pieces. */
  #join(count: number): void {
    if (count < 2) return
    this.#pieces.splice(0, count, joined(this.#pieces.slice(0, count)))
    this.#ends.splice(0, count - 1)
  }
}

/** All of one kind. */
function joined(pieces: readonly Piece[]): Piece {
  return typeof pieces[0] === 'string' ? pieces.join('') : Buffer.concat(pieces as Uint8Array[])
}

function pieceBytes(piece: Piece): number {
  return typeof piece === 'string' ? jsonBytes(piece) : piece.length
}

function jsonBytes(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value))
}
