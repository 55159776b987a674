import { encodeJson, type StreamPlace, type StreamStatus } from 'webmq-client/protocol'

/** Pieces that are kept apart before they become one: many small ones would take more memory than their text. */
const MAX_PIECES = 512
/** Memory of a fold beside its text. */
const OVERHEAD_BYTES = 1_024

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
  status: StreamStatus = 'end'
  /** As given to its start. */
  meta: unknown
  /** As given to its end. */
  result: unknown
  /** Messages of it are missing: the log has no longer got them. */
  isCut = false
  appendCount = 0
  /** Bytes that the text takes as a payload, at most. */
  byteCount = 0
  /** Its text was freed: the log has it. */
  isForgotten = false
  #pieces: Piece[] = []
  #otherBytes = 0
  #payload: Uint8Array | undefined

  get isActive(): boolean {
    return this.stream !== undefined && this.status === 'active'
  }

  /** Estimated memory. */
  get keptBytes(): number {
    return (
      (this.isForgotten ? 0 : 2 * this.byteCount) + (this.#payload?.length ?? 0) + this.#otherBytes + OVERHEAD_BYTES
    )
  }

  /** The whole: a text, or bytes; `undefined` while nothing was appended. Shared: nobody may change it. */
  get whole(): Piece | undefined {
    if (this.#pieces.length > 1) this.#pieces = [joined(this.#pieces)]
    return this.#pieces[0]
  }

  /** The whole as the payload of one message: encoded once for all who read it. Shared. */
  get payload(): Uint8Array | undefined {
    const { whole } = this
    this.#payload ??= typeof whole === 'string' ? Buffer.from(encodeJson(whole)) : whole
    return this.#payload
  }

  /**
   * Takes the next message of the log.
   * @param payload Parsed JSON, or bytes that stay; `undefined` for an empty one.
   * @returns Whether it changed the stream.
   */
  take({ stream, sequence, kind }: StreamPlace, payload: unknown): boolean {
    if (kind === 'beat' || kind === 'text') return false
    if (kind === 'start') {
      if (this.isActive || stream === this.stream) return false
      this.#begin(stream, sequence)
      this.meta = payload
      this.#otherBytes = jsonBytes(payload)
      return true
    }
    if (this.stream === undefined) {
      // The log begins within it.
      this.#begin(stream, sequence - 1)
      this.isCut = true
    }
    if (stream !== this.stream || !this.isActive || sequence <= this.sequence) return false
    this.isCut ||= sequence > this.sequence + 1
    this.sequence = sequence
    if (kind === 'append') this.#append(payload)
    else {
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
    this.#pieces = []
    this.#payload = undefined
    this.#otherBytes = 0
  }

  #begin(stream: string, sequence: number): void {
    this.stream = stream
    this.sequence = sequence
    this.status = 'active'
    this.meta = undefined
    this.result = undefined
    this.isCut = false
    this.appendCount = 0
    this.byteCount = 0
    this.isForgotten = false
    this.#pieces = []
    this.#payload = undefined
    this.#otherBytes = 0
  }

  #append(payload: unknown): void {
    this.appendCount++
    const [first] = this.#pieces
    const isPiece = typeof payload === 'string' || payload instanceof Uint8Array
    // Another program may have written it.
    if (!isPiece || (first !== undefined && typeof first !== typeof payload)) {
      this.isCut = true
      return
    }
    this.byteCount += typeof payload === 'string' ? jsonBytes(payload) : payload.length
    if (this.isForgotten) return
    this.#payload = undefined
    this.#pieces.push(payload)
    if (this.#pieces.length >= MAX_PIECES) this.#pieces = [joined(this.#pieces)]
  }
}

/** All of one kind. */
function joined(pieces: readonly Piece[]): Piece {
  return typeof pieces[0] === 'string' ? pieces.join('') : Buffer.concat(pieces as Uint8Array[])
}

function jsonBytes(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value))
}
