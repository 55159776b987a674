import { isUtf8 } from 'node:buffer'
import type { LinkDelivery, LinkMessage, LinkSource } from './link.js'

/*
 * byte 0        0x00: JSON text cannot begin with it
 * byte 1        version (high two bits) and flags
 * bytes 2-9     node
 * bytes 10-15   sequence
 * then          origin, 4 bytes, with HAS_ORIGIN
 * then          length of the key, 1 byte, and the key, with HAS_KEY
 * then          length of the message id, 1 byte, and the id, with HAS_ID
 * then          the payload; with IS_BUNDLE that of several messages (bundle.ts)
 *
 * All numbers are big-endian.
 */
const MARK = 0x00
const VERSION = 0x40
const VERSION_MASK = 0xc0
const IS_BINARY = 1
const HAS_ORIGIN = 2
const HAS_KEY = 4
const IS_BUNDLE = 8
const HAS_ID = 16
const HEAD_BYTES = 16
const ORIGIN_BYTES = 4
const SOURCE_BYTES = 14
const SEQUENCE_HIGH = 2 ** 32

/**
 * What a broker without properties of messages carries for a node: who published it, which of its messages it is, then the payload as it is.
 *
 * @param node 16 characters of `[0-9a-f]`.
 * @param message Its `origin` fits into 32 bits.
 * @param key Travels in the envelope when the channel does not tell it: 1 to 255 bytes.
 * @returns bytes of their own, in one allocation
 */
export function encodeEnvelope(node: string, message: LinkMessage, key?: string): Buffer {
  const bytes = Buffer.allocUnsafe(envelopeLength(message, key))
  writeEnvelope(bytes, 0, node, message, key)
  return bytes
}

/** Bytes of what {@link encodeEnvelope} makes. */
export function envelopeLength({ payload, origin, messageId }: LinkMessage, key?: string): number {
  return (
    HEAD_BYTES + (origin === undefined ? 0 : ORIGIN_BYTES) + textLength(key) + textLength(messageId) + payload.length
  )
}

function textLength(text: string | undefined): number {
  return text === undefined ? 0 : 1 + Buffer.byteLength(text)
}

/** {@link encodeEnvelope} in the middle of other bytes, which must have room for it; returns where it ends. */
export function writeEnvelope(bytes: Buffer, start: number, node: string, message: LinkMessage, key?: string): number {
  const { sequence, payload, isBinary, origin, isBundle, messageId } = message
  bytes[start] = MARK
  bytes[start + 1] =
    VERSION |
    (isBinary ? IS_BINARY : 0) |
    (origin === undefined ? 0 : HAS_ORIGIN) |
    (key === undefined ? 0 : HAS_KEY) |
    (isBundle === true ? IS_BUNDLE : 0) |
    (messageId === undefined ? 0 : HAS_ID)
  writeSource(bytes, start + 2, node, sequence)
  let at = start + HEAD_BYTES
  if (origin !== undefined) {
    writeUint32(bytes, at, origin)
    at += ORIGIN_BYTES
  }
  if (key !== undefined) at = writeText(bytes, at, key)
  if (messageId !== undefined) at = writeText(bytes, at, messageId)
  bytes.set(payload, at)
  return at + payload.length
}

/** Who published a message, and which of its messages it is, as it stands in the envelope from byte 2 on. */
export function sourceBytes({ node, sequence }: LinkSource): Buffer {
  const bytes = Buffer.allocUnsafe(SOURCE_BYTES)
  writeSource(bytes, 0, node, sequence)
  return bytes
}

function writeSource(bytes: Buffer, at: number, node: string, sequence: number): void {
  if (node !== ownNode.text) ownNode = nodeNumbers(node)
  writeUint32(bytes, at, ownNode.high)
  writeUint32(bytes, at + 4, ownNode.low)
  const high = Math.floor(sequence / SEQUENCE_HIGH)
  bytes[at + 8] = high >>> 8
  bytes[at + 9] = high
  writeUint32(bytes, at + 10, sequence % SEQUENCE_HIGH)
}

function writeText(bytes: Buffer, start: number, text: string): number {
  const byteCount = bytes.write(text, start + 1)
  bytes[start] = byteCount
  return start + 1 + byteCount
}

/**
 * What {@link encodeEnvelope} has made, or the bare message of somebody else: text if it is JSON, else binary.
 *
 * @param key From where the message came. Not checked here: only a message with a `source` had its key checked, by its node.
 *   `undefined` when the envelope must say it.
 * @param bytes The payload is a view of them.
 * @param start Where it begins among them, and where it ends.
 * @returns `undefined` for what is neither: an envelope cut short, of another version, or without the key that it should have
 */
export function decodeEnvelope(
  key: string | undefined,
  bytes: Uint8Array,
  start = 0,
  end = bytes.length,
): LinkDelivery | undefined {
  if (start === end || bytes[start] !== MARK) {
    return key === undefined ? undefined : bareMessage(key, viewOf(bytes, start, end))
  }
  const flags = bytes[start + 1] ?? 0
  if (end < start + HEAD_BYTES || (flags & VERSION_MASK) !== VERSION) return undefined
  const node = nodeText(readUint32(bytes, start + 2), readUint32(bytes, start + 6))
  const sequenceHigh = ((bytes[start + 10] ?? 0) << 8) | (bytes[start + 11] ?? 0)
  const sequence = sequenceHigh * SEQUENCE_HIGH + readUint32(bytes, start + 12)
  let at = start + HEAD_BYTES
  let origin: number | undefined
  if ((flags & HAS_ORIGIN) !== 0) {
    if (end < at + ORIGIN_BYTES) return undefined
    origin = readUint32(bytes, at)
    at += ORIGIN_BYTES
  }
  let ownKey: string | undefined
  if ((flags & HAS_KEY) !== 0) {
    const keyAt = at + 1
    at = endOfText(bytes, at, end)
    if (at === 0) return undefined
    ownKey = viewOf(bytes, keyAt, at).toString()
  }
  let messageId: string | undefined
  if ((flags & HAS_ID) !== 0) {
    const idAt = at + 1
    at = endOfText(bytes, at, end)
    if (at === 0) return undefined
    messageId = viewOf(bytes, idAt, at).toString()
  }
  const deliveryKey = ownKey ?? key
  if (deliveryKey === undefined) return undefined
  return {
    key: deliveryKey,
    payload: viewOf(bytes, at, end),
    isBinary: (flags & IS_BINARY) !== 0,
    source: { node, sequence, origin, isBundle: (flags & IS_BUNDLE) !== 0 },
    messageId,
  }
}

/** Where a text ends whose length stands before it; 0 when it is cut short. None is empty. */
function endOfText(bytes: Uint8Array, start: number, end: number): number {
  // A length of zero also stands for a byte that is not there.
  const length = bytes[start] ?? 0
  const textEnd = start + 1 + length
  return length === 0 || textEnd > end ? 0 : textEnd
}

function bareMessage(key: string, bytes: Buffer): LinkDelivery {
  return { key, payload: bytes, isBinary: !isJson(bytes), source: undefined }
}

function isJson(bytes: Buffer): boolean {
  if (!isUtf8(bytes)) return false
  try {
    JSON.parse(bytes.toString())
    return true
  } catch {
    // The parser has no other way to say it.
    return false
  }
}

/** `subarray` of a Uint8Array would not have the methods of a Buffer, and costs more. */
function viewOf(bytes: Uint8Array, start: number, end: number): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start)
}

function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
}

function readUint32(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16)
  return (high | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0
}

/** A node as it is written, and the two halves of its number. */
interface NodeNumbers {
  readonly text: string
  readonly high: number
  readonly low: number
}

/** The node that sent last: mostly there is one in a process. */
let ownNode: NodeNumbers = { text: '', high: 0, low: 0 }

/** Nodes that were heard, by a few of their bits: those that fall together push each other out. A power of two. */
const SLOT_COUNT = 256
const heardNodes = new Array<NodeNumbers | undefined>(SLOT_COUNT).fill(undefined)

function nodeNumbers(text: string): NodeNumbers {
  return { text, high: Number.parseInt(text.slice(0, 8), 16), low: Number.parseInt(text.slice(8), 16) }
}

function nodeText(high: number, low: number): string {
  const slot = (high ^ low) & (SLOT_COUNT - 1)
  const heard = heardNodes[slot]
  if (heard !== undefined && heard.high === high && heard.low === low) return heard.text
  const text = high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')
  heardNodes[slot] = { text, high, low }
  return text
}
