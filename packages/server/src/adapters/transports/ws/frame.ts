import { constants, deflateRawSync } from 'node:zlib'
import type { FrameData } from '../../../kernel/ports/transport.js'
import { frameHeaderBytes } from '../outbox.js'

const FINAL = 0x80
const COMPRESSED = 0x40
const TEXT = 1
const BINARY = 2
/** RFC 7692 §7.2.1: a sync flush ends with these bytes, which are not sent. */
const FLUSH_END_BYTES = 4

/** A message on its way: one object, and one encoding, for all its receivers. */
export class WsFrame {
  /** Header and payload. */
  readonly plain: Buffer
  readonly #headerBytes: number
  #deflated: Buffer | undefined

  /** Copies `data`; the caller may reuse the bytes afterwards. */
  constructor(data: FrameData, isBinary: boolean) {
    const byteLength = typeof data === 'string' ? Buffer.byteLength(data) : data.byteLength
    const opcode = isBinary && typeof data !== 'string' ? BINARY : TEXT
    this.#headerBytes = frameHeaderBytes(byteLength)
    const frame = Buffer.allocUnsafe(this.#headerBytes + byteLength)
    writeHeader(frame, FINAL | opcode, byteLength)
    if (typeof data === 'string') frame.write(data, this.#headerBytes)
    else if (data instanceof Uint8Array) frame.set(data, this.#headerBytes)
    else data.writeTo(frame, this.#headerBytes)
    this.plain = frame
  }

  get payload(): Buffer {
    return this.plain.subarray(this.#headerBytes)
  }

  get payloadBytes(): number {
    return this.plain.length - this.#headerBytes
  }

  /**
   * The frame with a compressed payload, or the plain one if that is smaller. Compressed once.
   * Cost: blocks the event loop for about 10 us per KiB.
   */
  get deflated(): Buffer {
    this.#deflated ??= this.#deflate()
    return this.#deflated
  }

  #deflate(): Buffer {
    const flushed = deflateRawSync(this.payload, { finishFlush: constants.Z_SYNC_FLUSH })
    const bytes = flushed.length - FLUSH_END_BYTES
    const header = frameHeaderBytes(bytes)
    if (header + bytes >= this.plain.length) return this.plain
    const frame = Buffer.allocUnsafe(header + bytes)
    writeHeader(frame, COMPRESSED | (this.plain[0] ?? 0), bytes)
    flushed.copy(frame, header, 0, bytes)
    return frame
  }
}

function writeHeader(frame: Buffer, firstByte: number, payloadBytes: number): void {
  frame[0] = firstByte
  if (payloadBytes < 126) frame[1] = payloadBytes
  else if (payloadBytes < 65_536) {
    frame[1] = 126
    frame.writeUInt16BE(payloadBytes, 2)
  } else {
    frame[1] = 127
    frame.writeBigUInt64BE(BigInt(payloadBytes), 2)
  }
}
