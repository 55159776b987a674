import { encodeValue, FieldReader } from './fields.js'
import { encodeMethod, type FieldsOf, type MethodName } from './methods.js'

export const FRAME = { method: 1, header: 2, body: 3, heartbeat: 8 } as const
const FRAME_END = 0xce
/** Type, channel and size before the payload, and the end behind it. */
const OVERHEAD_BYTES = 8
const BASIC_CLASS = 60

export interface Frame {
  readonly type: number
  readonly channel: number
  readonly payload: Buffer
}

/** Puts frames together from bytes in any pieces. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0)

  push(bytes: Uint8Array): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
  }

  /** Takes `length` bytes off; `undefined` while they are not there. */
  take(length: number): Buffer | undefined {
    if (this.#rest.length < length) return undefined
    const taken = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return taken
  }

  /** The next frame, if all of it is there. */
  next(): Frame | undefined {
    if (this.#rest.length < OVERHEAD_BYTES) return undefined
    const size = this.#rest.readUInt32BE(3)
    const bytes = this.take(size + OVERHEAD_BYTES)
    if (bytes === undefined) return undefined
    if (bytes.readUInt8(size + OVERHEAD_BYTES - 1) !== FRAME_END) throw new Error('a frame does not end where it must')
    return { type: bytes.readUInt8(0), channel: bytes.readUInt16BE(1), payload: bytes.subarray(7, 7 + size) }
  }
}

function frame(type: number, channel: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(payload.length + OVERHEAD_BYTES)
  bytes.writeUInt8(type, 0)
  bytes.writeUInt16BE(channel, 1)
  bytes.writeUInt32BE(payload.length, 3)
  bytes.set(payload, 7)
  bytes.writeUInt8(FRAME_END, bytes.length - 1)
  return bytes
}

export const HEARTBEAT = frame(FRAME.heartbeat, 0, Buffer.alloc(0))

export function methodFrame<N extends MethodName>(channel: number, name: N, values: FieldsOf<N>): Buffer {
  return frame(FRAME.method, channel, encodeMethod(name, values))
}

/** What a message is besides its address: its properties as they came, and its payload. */
export interface Content {
  /** Flags and fields. */
  readonly properties: Buffer
  readonly payload: Buffer
}

export function contentFrames(channel: number, { properties, payload }: Content, frameMaxBytes: number): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt16BE(BASIC_CLASS, 0)
  header.writeBigUInt64BE(BigInt(payload.length), 4)
  const parts = [frame(FRAME.header, channel, Buffer.concat([header, properties]))]
  const maxBytes = frameMaxBytes - OVERHEAD_BYTES
  for (let from = 0; from < payload.length; from += maxBytes) {
    parts.push(frame(FRAME.body, channel, payload.subarray(from, from + maxBytes)))
  }
  return Buffer.concat(parts)
}

/** Collects header and body frames behind a `basic.publish`. */
export class ContentReader {
  #properties: Buffer | undefined
  #leftBytes = 0
  readonly #parts: Buffer[] = []

  /** @returns the content when it is whole. */
  push({ type, payload }: Frame): Content | undefined {
    if (type === FRAME.header) {
      this.#leftBytes = Number(payload.readBigUInt64BE(4))
      this.#properties = Buffer.from(payload.subarray(12))
    } else {
      this.#leftBytes -= payload.length
      this.#parts.push(Buffer.from(payload))
    }
    if (this.#leftBytes > 0 || this.#properties === undefined) return undefined
    return { properties: this.#properties, payload: Buffer.concat(this.#parts) }
  }
}

const FLAGS = { contentType: 1 << 15, contentEncoding: 1 << 14, headers: 1 << 13, deliveryMode: 1 << 12 } as const
const PERSISTENT = 2

export function isPersistent(properties: Buffer): boolean {
  const { flags, reader } = toHeaders(properties)
  if ((flags & FLAGS.deliveryMode) === 0) return false
  if ((flags & FLAGS.headers) !== 0) reader.read('table')
  return reader.read('octet') === PERSISTENT
}

/** The same properties with one more header. */
export function withHeader(properties: Buffer, name: string, value: number): Buffer {
  const { flags, reader } = toHeaders(properties)
  const text = Buffer.from(name)
  const entry = Buffer.concat([Buffer.from([text.length]), text, encodeValue(value)])
  const tableAt = 2 + reader.at
  const hasHeaders = (flags & FLAGS.headers) !== 0
  const oldBytes = hasHeaders ? properties.readUInt32BE(tableAt) : 0
  const size = Buffer.alloc(4)
  size.writeUInt32BE(oldBytes + entry.length)
  const flagged = Buffer.from(properties.subarray(0, tableAt))
  flagged.writeUInt16BE(flags | FLAGS.headers, 0)
  const oldAt = tableAt + (hasHeaders ? 4 : 0)
  const old = properties.subarray(oldAt, oldAt + oldBytes)
  return Buffer.concat([flagged, size, old, entry, properties.subarray(oldAt + oldBytes)])
}

const [BYTES_TAG, TEXT_TAG] = Buffer.from('xS')

/** The same properties, whose headers that are bytes are declared as text. */
export function withTextHeaders(properties: Buffer): Buffer {
  const { flags, reader } = toHeaders(properties)
  if ((flags & FLAGS.headers) === 0) return properties
  const changed = Buffer.from(properties)
  const tableAt = 2 + reader.at + 4
  const table = new FieldReader(changed.subarray(tableAt, tableAt + properties.readUInt32BE(tableAt - 4)))
  while (!table.isAtEnd) {
    table.read('shortstr')
    const tagAt = tableAt + table.at
    if (changed[tagAt] === BYTES_TAG) changed.writeUInt8(TEXT_TAG ?? 0, tagAt)
    table.readValue()
  }
  return changed
}

function toHeaders(properties: Buffer): { readonly flags: number; readonly reader: FieldReader } {
  const flags = properties.readUInt16BE(0)
  const reader = new FieldReader(properties.subarray(2))
  if ((flags & FLAGS.contentType) !== 0) reader.read('shortstr')
  if ((flags & FLAGS.contentEncoding) !== 0) reader.read('shortstr')
  return { flags, reader }
}
