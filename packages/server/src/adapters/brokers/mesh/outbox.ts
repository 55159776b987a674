import { FRAME, FRAME_HEAD_BYTES, isCounted } from './frames.js'

/** Large enough for hundreds of small messages per write, small enough for a core's cache. */
const CHUNK_BYTES = 64 * 1024
const ATTRIBUTES_LENGTH_BYTES = 2
const MAX_SPARE_CHUNKS = 4
const NO_TEXT = new Uint8Array(0)
/** Up to this length a loop copies faster than a call. */
const MAX_LOOPED_BYTES = 48

interface Chunk {
  readonly bytes: Buffer
  /** Bytes in use. */
  length: number
  /** Sequence of its first counted frame; without one, of the next counted frame. */
  readonly firstSequence: number
  /** Sequence of its last counted frame; without one, of the counted frame before it. */
  lastSequence: number
}

/**
 * The stream of frames to one node. Every frame is encoded once, into chunks; a write sends a range of a chunk. Counted
 * frames stay until the other node acknowledges them, so that a new link can continue where the last one broke.
 */
export class Outbox {
  /** In order. New frames go into the last one. */
  readonly #chunks: Chunk[] = []
  readonly #spares: Buffer[] = []
  lastSequence = 0
  ackedSequence = 0
  /** The next bytes to send: index of the chunk, and offset in it. */
  #cursorChunk = 0
  #cursorAt = 0
  /** Whether a range from `next` is still being written. */
  #isLent = false

  get keptBytes(): number {
    return this.#chunks.reduce((sum, { bytes }) => sum + bytes.length, 0)
  }

  /** Counted frames that the other node has not acknowledged. */
  get unackedCount(): number {
    return this.lastSequence - this.ackedSequence
  }

  /** Whether a chunk is nearly full: a good time to write. */
  get isFull(): boolean {
    const chunk = this.#chunks[this.#chunks.length - 1]
    return chunk !== undefined && (this.#cursorChunk < this.#chunks.length - 1 || chunk.length * 4 > CHUNK_BYTES * 3)
  }

  /**
   * Adds a message: length of the attributes and the attributes, message id, key, payload.
   * @param key At most 255 bytes, as the message id.
   * @param payload Copied.
   * @param messageId As in {@link OutboundMessage}, in ASCII.
   * @param attributes Encoded.
   */
  addMessage(
    key: Uint8Array,
    payload: Uint8Array,
    isBinary: boolean,
    messageId?: Uint8Array,
    attributes?: Uint8Array,
  ): void {
    const idBytes = messageId === undefined && attributes === undefined ? 0 : 1 + (messageId?.length ?? 0)
    const attributeBytes = attributes === undefined ? 0 : ATTRIBUTES_LENGTH_BYTES + attributes.length
    const bodyBytes = attributeBytes + idBytes + 1 + key.length + payload.length
    const chunk = this.#room(FRAME_HEAD_BYTES + bodyBytes)
    const { bytes } = chunk
    let at = writeHead(bytes, chunk.length, messageType(isBinary, idBytes > 0, attributes !== undefined), bodyBytes)
    if (attributes !== undefined) {
      at = bytes.writeUInt16LE(attributes.length, at)
      bytes.set(attributes, at)
      at += attributes.length
    }
    // After attributes it may be empty: there is none.
    if (idBytes > 0) at = writeText(bytes, at, messageId ?? NO_TEXT)
    at = writeText(bytes, at, key)
    bytes.set(payload, at)
    chunk.length = at + payload.length
    chunk.lastSequence = ++this.lastSequence
  }

  add(type: number, body: Uint8Array): void {
    const chunk = this.#room(FRAME_HEAD_BYTES + body.length)
    const at = writeHead(chunk.bytes, chunk.length, type, body.length)
    chunk.bytes.set(body, at)
    chunk.length = at + body.length
    if (isCounted(type)) chunk.lastSequence = ++this.lastSequence
  }

  /** The next range to write; do not reuse it before `wrote`. `undefined` if there is none. */
  next(): Buffer | undefined {
    for (;;) {
      const chunk = this.#chunks[this.#cursorChunk]
      if (chunk === undefined) return undefined
      if (this.#cursorAt < chunk.length) {
        const range = chunk.bytes.subarray(this.#cursorAt, chunk.length)
        this.#cursorAt = chunk.length
        this.#isLent = true
        return range
      }
      if (this.#cursorChunk === this.#chunks.length - 1) return undefined
      this.#cursorChunk++
      this.#cursorAt = 0
    }
  }

  wrote(): void {
    this.#isLent = false
    this.#free()
  }

  /** The other node acknowledges all frames up to this one. Returns `false` if it was never sent. */
  acked(sequence: number): boolean {
    if (sequence > this.lastSequence) return false
    if (sequence > this.ackedSequence) {
      this.ackedSequence = sequence
      this.#free()
    }
    return true
  }

  /** Continues after this frame, on a new link. A range from `next` is no longer in use. */
  rewind(sequence: number): void {
    this.#isLent = false
    this.#cursorChunk = this.#chunks.findIndex(({ lastSequence }) => lastSequence > sequence)
    const chunk = this.#chunks[this.#cursorChunk]
    if (chunk === undefined) {
      this.#cursorChunk = Math.max(0, this.#chunks.length - 1)
      this.#cursorAt = this.#chunks[this.#cursorChunk]?.length ?? 0
    } else this.#cursorAt = endOf(chunk, sequence)
    this.#free()
  }

  #room(size: number): Chunk {
    const last = this.#chunks[this.#chunks.length - 1]
    if (last !== undefined && last.length + size <= last.bytes.length) return last
    const bytes =
      size > CHUNK_BYTES ? Buffer.allocUnsafeSlow(size) : (this.#spares.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES))
    const chunk = { bytes, length: 0, firstSequence: this.lastSequence + 1, lastSequence: this.lastSequence }
    this.#chunks.push(chunk)
    return chunk
  }

  /** Frees chunks that are written and acknowledged. */
  #free(): void {
    if (this.#isLent) return
    for (;;) {
      const chunk = this.#chunks[0]
      if (chunk === undefined || chunk.lastSequence > this.ackedSequence) return
      if (this.#cursorChunk === 0 && this.#cursorAt < chunk.length) return
      this.#chunks.shift()
      if (this.#cursorChunk > 0) this.#cursorChunk--
      else this.#cursorAt = 0
      if (chunk.bytes.length === CHUNK_BYTES && this.#spares.length < MAX_SPARE_CHUNKS) this.#spares.push(chunk.bytes)
    }
  }
}

function messageType(isBinary: boolean, hasId: boolean, hasAttributes: boolean): number {
  if (hasAttributes) return isBinary ? FRAME.binaryWithAttributes : FRAME.textWithAttributes
  if (hasId) return isBinary ? FRAME.binaryWithId : FRAME.textWithId
  return isBinary ? FRAME.binary : FRAME.text
}

/** Writes a length and a text; returns the end. */
function writeText(bytes: Buffer, start: number, text: Uint8Array): number {
  const { length } = text
  let at = start
  bytes[at++] = length
  if (length > MAX_LOOPED_BYTES) bytes.set(text, at)
  else for (let index = 0; index < length; index++) bytes[at + index] = text[index] as number
  return at + length
}

/** Writes length and type; returns where the body begins. */
function writeHead(bytes: Buffer, at: number, type: number, bodyLength: number): number {
  const length = bodyLength + 1
  bytes[at] = length
  bytes[at + 1] = length >>> 8
  bytes[at + 2] = length >>> 16
  bytes[at + 3] = length >>> 24
  bytes[at + 4] = type
  return at + FRAME_HEAD_BYTES
}

/** Offset in the chunk behind the counted frame with this sequence. */
function endOf(chunk: Chunk, sequence: number): number {
  let at = 0
  let next = chunk.firstSequence
  while (next <= sequence) {
    if (isCounted(chunk.bytes[at + 4] as number)) next++
    at += 4 + chunk.bytes.readUInt32LE(at)
  }
  return at
}
