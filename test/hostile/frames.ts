/** Opcodes of RFC 6455 §5.2. */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** Parts of a frame that honest clients never vary. */
export interface FrameShape {
  readonly opcode?: number
  /** Default: true. */
  readonly isFinal?: boolean
  /** RSV1 to RSV3 as three bits: 4 is RSV1. */
  readonly reserved?: number
  /** Default: true. */
  readonly isMasked?: boolean
  /** Length in the header, if not that of the payload. */
  readonly announcedBytes?: number | bigint
}

/** Always the same, because nothing here has to hide from proxies; random ones would cost more than the frames. */
const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d])
const EMPTY = Buffer.alloc(0)

/** A frame as a client sends it, right or wrong. */
export function frameOf(payload: Buffer | string, shape: FrameShape = {}): Buffer {
  const { opcode = OPCODE.text, isFinal = true, reserved = 0, isMasked = true } = shape
  const body = typeof payload === 'string' ? Buffer.from(payload) : payload
  const length = shape.announcedBytes ?? body.length
  const extra = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const headBytes = 2 + extra + (isMasked ? MASK.length : 0)
  const frame = Buffer.allocUnsafe(headBytes + body.length)
  frame[0] = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode
  frame[1] = (isMasked ? 0x80 : 0) | (extra === 0 ? Number(length) : extra === 2 ? 126 : 127)
  if (extra === 2) frame.writeUInt16BE(Number(length), 2)
  if (extra === 8) frame.writeBigUInt64BE(BigInt(length), 2)
  if (!isMasked) {
    body.copy(frame, headBytes)
    return frame
  }
  MASK.copy(frame, 2 + extra)
  for (let place = 0; place < body.length; place++) {
    frame[headBytes + place] = (body[place] ?? 0) ^ (MASK[place & 3] ?? 0)
  }
  return frame
}

/** Text of a close code, as the payload of a close frame. */
export function closePayload(code: number): Buffer {
  const payload = Buffer.allocUnsafe(2)
  payload.writeUInt16BE(code)
  return payload
}

/** A frame of the server; of its payload only the start. */
export interface ServerFrame {
  readonly opcode: number
  readonly isCompressed: boolean
  readonly head: Buffer
  readonly payloadBytes: number
}

/** Bytes of a payload that are kept: a header with its ids, keys and codes. */
const KEPT_BYTES = 512

/** Splits the bytes of a server into frames, without keeping their payloads. */
export class FrameReader {
  readonly #onFrame: (frame: ServerFrame) => void
  readonly #header = Buffer.allocUnsafe(10)
  #headerBytes = 0
  #payloadBytes = 0
  /** Payload bytes that have not come. */
  #restBytes = 0
  #kept: Buffer = EMPTY

  constructor(onFrame: (frame: ServerFrame) => void) {
    this.#onFrame = onFrame
  }

  read(chunk: Buffer): void {
    let offset = 0
    while (offset < chunk.length) {
      if (this.#restBytes === 0) offset = this.#readHeader(chunk, offset)
      else offset = this.#readPayload(chunk, offset)
    }
  }

  #readHeader(chunk: Buffer, from: number): number {
    let offset = from
    while (offset < chunk.length) {
      this.#header[this.#headerBytes++] = chunk[offset++] ?? 0
      const wanted = headerBytesOf(this.#header, this.#headerBytes)
      if (this.#headerBytes < wanted) continue
      this.#payloadBytes = payloadBytesOf(this.#header)
      this.#restBytes = this.#payloadBytes
      this.#headerBytes = 0
      this.#kept = EMPTY
      if (this.#restBytes === 0) this.#end()
      return offset
    }
    return offset
  }

  #readPayload(chunk: Buffer, offset: number): number {
    const end = Math.min(chunk.length, offset + this.#restBytes)
    if (this.#kept.length < KEPT_BYTES) {
      const part = chunk.subarray(offset, Math.min(end, offset + KEPT_BYTES - this.#kept.length))
      this.#kept = this.#kept.length === 0 ? part : Buffer.concat([this.#kept, part])
    }
    this.#restBytes -= end - offset
    if (this.#restBytes === 0) this.#end()
    return end
  }

  #end(): void {
    const first = this.#header[0] ?? 0
    this.#onFrame({
      opcode: first & 0x0f,
      isCompressed: (first & 0x40) !== 0,
      head: this.#kept,
      payloadBytes: this.#payloadBytes,
    })
  }
}

function headerBytesOf(header: Buffer, count: number): number {
  if (count < 2) return 2
  const length = (header[1] ?? 0) & 0x7f
  return length === 126 ? 4 : length === 127 ? 10 : 2
}

function payloadBytesOf(header: Buffer): number {
  const length = (header[1] ?? 0) & 0x7f
  if (length === 126) return header.readUInt16BE(2)
  return length === 127 ? Number(header.readBigUInt64BE(2)) : length
}
