import { crc32 } from 'node:zlib'
import { encodeJson, type StreamPlace, type StreamStatus, type StreamSummary } from 'webmq-client/protocol'
import { defined } from '../../kernel/base/defined.js'
import type { JsonText } from '../../kernel/base/json-text.js'
import type { FoldBytes } from './fold-bytes.js'
import { joined, type Piece, pieceBytes, pieceOf, shallowJson } from './pieces.js'
import { type SharedState, sharedAfter, sharedStateOf, tookMark } from './shared-state.js'

/** Pieces that are kept apart before they become one: many small ones would take more memory than their text. */
const MAX_PIECES = 512
/** Last messages that can be told from others with their numbers: more than a writer has on its way. */
const MAX_CHECKSUMS = 16
/** Memory beside the text, that of its watch and its listen included. Measured: 3,029 bytes, and then a checksum has 8. */
const OVERHEAD_BYTES = 3_328
const PRODUCER_BYTES = 256

const NOT_ROLLED_UP = { sequence: -1, byteCount: 0 }

/** What a message of a stream has beside its place. */
export interface StreamContent {
  /** JSON; bytes if it is binary. It stays as it is: nobody changes it. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** This and the checksum: as in {@link MessageAttributes}. */
  readonly owner?: string | undefined
  readonly checksum?: number | undefined
}

/** What a stream is beside its text; without an id, the key has none. For {@link encodeWithTexts}. */
export interface StreamFacts extends Omit<StreamSummary, 'meta' | 'result'> {
  readonly meta?: JsonText
  readonly result?: JsonText
}

/** A stream up to some message, as the log has it in one. */
export interface RollUp
  extends Readonly<
    Pick<StreamFold, 'status' | 'meta' | 'result' | 'isCut' | 'appendCount' | 'byteCount' | 'shared' | 'owner'>
  > {
  readonly whole: Piece | undefined
  /** Of its last message. */
  readonly checksum: number | undefined
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
  meta: JsonText | undefined
  /** As given to its end. */
  result: JsonText | undefined
  /** Something of it is missing: the log has no longer got it, or another program has written what is none of its kind. */
  isCut = false
  /** Who alone writes it; `undefined`: whoever may publish to its key. */
  owner: string | undefined
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
  /** Of its last messages; that of its last one comes last. */
  #checksums: (number | undefined)[] = []
  /** No message is missing from this number on. */
  #isWholeFrom = 0
  #otherBytes = 0
  #payload: Uint8Array | undefined

  get isActive(): boolean {
    return this.stream !== undefined && this.status === 'active'
  }

  get facts(): StreamFacts {
    const { stream, sequence, status, meta, result, isCut } = this
    if (stream === undefined || status === 'delete') return {}
    return { stream, sequence, status, ...defined({ meta, result, isCut: isCut || undefined }) }
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

  /** What follows the first `length` units or bytes. Cost: O(pieces), and of what it gives. */
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

  /** Whether somebody may write its messages. */
  isOf(owner: string | undefined): boolean {
    return this.owner === undefined || owner === undefined || owner === this.owner
  }

  /** Whether a message with the number of one of the stream is that one, as far as it is known. */
  isRepeat(sequence: number, checksum: number): boolean {
    const known = this.#checksums.at(sequence - this.sequence - 1)
    return sequence > this.sequence || known === undefined || known === checksum
  }

  /**
   * Takes the next message of the log. What is none of its kind, or is nested too deeply, is missing in the stream.
   * @returns Whether it changed the stream.
   */
  take({ stream, sequence, kind, mark }: StreamPlace, content: StreamContent): boolean {
    if (kind === 'beat' && stream === this.stream) tookMark(this.shared, undefined, mark)
    if (kind === 'beat' || kind === 'text') return false
    const { payload, owner, checksum } = content
    if (kind === 'start') {
      if (this.isActive || stream === this.stream) return false
      this.#begin(stream, sequence, mark)
      this.owner = owner
      this.#checksums = [checksum]
      this.meta = this.#jsonOf(content)
      this.#otherBytes = this.meta?.text.length ?? 0
      return true
    }
    if (this.stream === undefined || (this.#begunBy !== undefined && stream !== this.stream)) {
      // The log begins within it.
      this.#begin(stream, sequence - 1, mark)
      this.owner = owner
      this.isCut = true
    }
    if (stream !== this.stream || sequence <= this.sequence || !this.isOf(owner)) return false
    if (!this.isActive && (kind !== 'delete' || this.status === 'delete')) return false
    if (sequence > this.sequence + 1) {
      this.isCut = true
      this.#isWholeFrom = sequence
      this.#checksums = []
    }
    this.sequence = sequence
    this.#checksums.push(checksum)
    if (this.#checksums.length > MAX_CHECKSUMS) this.#checksums.shift()
    this.#begunBy = undefined
    tookMark(this.shared, { sequence, isEnd: kind !== 'append' }, mark)
    if (kind === 'append') this.#append(content)
    else if (kind === 'close') {
      if (payload.length > 0) this.#append(content)
      this.status = 'end'
    } else if (kind === 'delete') {
      // Its server knows by the mark that it was this one.
      this.#begin(stream, sequence, mark)
      this.status = 'delete'
    } else {
      this.status = kind
      this.result = this.#jsonOf(content)
      this.#otherBytes += this.result?.text.length ?? 0
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
    this.owner ??= rollUp.owner
    if (isNewer) this.#checksums = [rollUp.checksum]
    this.shared = rollUp.shared && sharedAfter(rollUp.shared, sequence, isNewer ? undefined : this.shared, later)
    this.isCut = rollUp.isCut
    if (this.isCut) this.#isWholeFrom = sequence + 1
    this.isForgotten = false
    this.byteCount = later.reduce((sum, piece) => sum + pieceBytes(piece), rollUp.byteCount)
    this.#pieces = whole === undefined ? later : [whole, ...later]
    this.#ends = whole === undefined ? ends : [sequence, ...ends]
    this.#first = whole === undefined ? first : 0
    this.#otherBytes = (meta?.text.length ?? 0) + (this.result?.text.length ?? 0)
    return true
  }

  /** All of it, to be kept in the log. @param upTo Offset of the log up to which it was folded. */
  rollUp(upTo: number): RollUp {
    const { status, meta, result, isCut, appendCount, byteCount, owner, shared, whole } = this
    const checksum = this.#checksums.at(-1)
    const known = { status, meta, result, isCut, appendCount, byteCount, owner, checksum }
    return { ...known, shared: shared && sharedAfter(shared), whole, upTo }
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
    this.owner = undefined
    this.#checksums = []
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

  /** What a start or an end says. */
  #jsonOf({ payload, isBinary }: StreamContent): JsonText | undefined {
    if (payload.length === 0) return undefined
    const json = isBinary ? undefined : shallowJson(payload)
    if (json === undefined) this.#miss()
    return json
  }

  #miss(): void {
    this.isCut = true
    this.#isWholeFrom = this.sequence + 1
  }

  #append({ payload, isBinary }: StreamContent): void {
    this.appendCount++
    const [first] = this.#pieces
    const piece = pieceOf(payload, isBinary)
    if (piece === undefined || (first !== undefined && typeof first !== typeof piece)) {
      this.#miss()
      return
    }
    this.byteCount += pieceBytes(piece, payload)
    if (this.shared !== undefined) this.shared.checksum = crc32(piece, this.shared.checksum)
    if (this.isForgotten) return
    this.#payload = undefined
    if (first === undefined) this.#first = this.sequence
    this.#pieces.push(piece)
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
