import { WebMQError } from 'webmq-client/protocol'
import { isJson } from '../../../kernel/base/parse-json.js'
import { decodeAttributes, encodeAttributes, type MessageAttributes } from '../../../kernel/ports/attributes.js'
import type { LinkDelivery, LinkMessage, LoggedDelivery } from './link.js'

/*
 * byte 0        0x00, which JSON text cannot begin with
 * byte 1        version (high two bits) and flags
 * bytes 2-9     node
 * bytes 10-15   sequence; 0 for a message of another program in the log of a Redis
 * then          publisher, 4 bytes, with HAS_PUBLISHER
 * then          length of the key, 1 byte, and the key, with HAS_KEY
 * then          length of the message id, 1 byte, and the id, with HAS_ID
 * then          length of the attributes, 2 bytes, and the attributes, with HAS_ATTRIBUTES
 * then          the payload; with IS_BUNDLE a bundle of messages (bundle.ts)
 *
 * All numbers are big-endian.
 */
const MAGIC = 0x00
const VERSION = 0x40
const VERSION_MASK = 0xc0
const IS_BINARY = 1
const HAS_PUBLISHER = 2
const HAS_KEY = 4
const IS_BUNDLE = 8
const HAS_ID = 16
const HAS_ATTRIBUTES = 32
const HEAD_BYTES = 16
/** Of the publishing connection. */
export const PUBLISHER_BYTES = 4
/** The length of a text is one byte. */
const MAX_TEXT_BYTES = 255
const ATTRIBUTES_LENGTH_BYTES = 2
const SEQUENCE_HIGH = 2 ** 32

/**
 * Encodes a message for a broker whose messages have no properties: its source, then the payload unchanged.
 *
 * @param node 16 characters of `[0-9a-f]`.
 * @param message Its `publisher` fits into 32 bits.
 * @param key Given when the channel does not tell the key: 1 to 255 bytes.
 * @returns a new allocation
 * @throws {WebMQError} `E_MESSAGE_INVALID` for a key or a message id of more than 255 bytes.
 */
export function encodeEnvelope(node: string, message: LinkMessage, key?: string): Buffer {
  const { sequence, payload, isBinary, publisher, isBundle, messageId } = message
  const attributes = message.attributes === undefined ? undefined : encodeAttributes(message.attributes)
  const publisherBytes = publisher === undefined ? 0 : PUBLISHER_BYTES
  const attributesBytes = attributes === undefined ? 0 : ATTRIBUTES_LENGTH_BYTES + attributes.length
  const headBytes = HEAD_BYTES + publisherBytes + textLength(key) + textLength(messageId) + attributesBytes
  const bytes = Buffer.allocUnsafe(headBytes + payload.length)
  bytes[0] = MAGIC
  bytes[1] =
    VERSION |
    (isBinary ? IS_BINARY : 0) |
    (publisher === undefined ? 0 : HAS_PUBLISHER) |
    (key === undefined ? 0 : HAS_KEY) |
    (isBundle === true ? IS_BUNDLE : 0) |
    (messageId === undefined ? 0 : HAS_ID) |
    (attributes === undefined ? 0 : HAS_ATTRIBUTES)
  writeSource(bytes, 2, node, sequence)
  let at = HEAD_BYTES
  if (publisher !== undefined) {
    writeUint32(bytes, at, publisher)
    at += PUBLISHER_BYTES
  }
  if (key !== undefined) at = writeText(bytes, at, key)
  if (messageId !== undefined) at = writeText(bytes, at, messageId)
  if (attributes !== undefined) {
    at = bytes.writeUInt16BE(attributes.length, at)
    bytes.set(attributes, at)
    at += attributes.length
  }
  bytes.set(payload, at)
  return bytes
}

function textLength(text: string | undefined): number {
  if (text === undefined) return 0
  const byteCount = Buffer.byteLength(text)
  if (byteCount > MAX_TEXT_BYTES) {
    const detail = `a key or message id of ${byteCount} bytes, at most ${MAX_TEXT_BYTES} are allowed`
    throw new WebMQError('E_MESSAGE_INVALID', { detail })
  }
  return 1 + byteCount
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
 * Decodes an envelope, or the bare message of another program: text if it is JSON, else binary.
 *
 * @param key The key that the channel tells, or `undefined` when the envelope must hold it. Not checked here: only a
 *   message with a `source` had its key checked, by its node.
 * @param bytes The payload is a view of them.
 * @returns `undefined` for an envelope that is cut short, of another version, or without its key
 */
export function decodeEnvelope(key: string | undefined, bytes: Uint8Array): LinkDelivery | undefined {
  const end = bytes.length
  if (bytes[0] !== MAGIC) return key === undefined ? undefined : bareMessage(key, viewOf(bytes, 0, end))
  const flags = bytes[1] ?? 0
  if (end < HEAD_BYTES || (flags & VERSION_MASK) !== VERSION) return undefined
  const node = nodeText(readUint32(bytes, 2), readUint32(bytes, 6))
  const sequenceHigh = ((bytes[10] ?? 0) << 8) | (bytes[11] ?? 0)
  const sequence = sequenceHigh * SEQUENCE_HIGH + readUint32(bytes, 12)
  let at = HEAD_BYTES
  let publisher: number | undefined
  if ((flags & HAS_PUBLISHER) !== 0) {
    if (end < at + PUBLISHER_BYTES) return undefined
    publisher = readUint32(bytes, at)
    at += PUBLISHER_BYTES
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
  let attributes: MessageAttributes | undefined
  if ((flags & HAS_ATTRIBUTES) !== 0) {
    const start = at + ATTRIBUTES_LENGTH_BYTES
    at = start + ((bytes[at] ?? 0) << 8) + (bytes[at + 1] ?? 0)
    if (at > end) return undefined
    attributes = decodeAttributes(viewOf(bytes, start, at))
    if (attributes === undefined) return undefined
  }
  const deliveryKey = ownKey ?? key
  if (deliveryKey === undefined) return undefined
  const payload = viewOf(bytes, at, end)
  if (sequence === 0) return { ...bareMessage(deliveryKey, payload), messageId }
  return {
    key: deliveryKey,
    payload,
    isBinary: (flags & IS_BINARY) !== 0,
    source: { node, sequence, publisher, isBundle: (flags & IS_BUNDLE) !== 0 },
    messageId,
    attributes,
  }
}

/** Adds what the log says of a message. Spelled out: to spread it takes 25 times as long, 3 us. */
export function logged(
  { key, payload, isBinary, source, messageId, attributes }: LinkDelivery,
  offset: number,
  fingerprint: number,
  timeMs: number,
): LoggedDelivery {
  return { key, payload, isBinary, source, messageId, attributes, offset, fingerprint, timeMs }
}

/** End of a text that begins with its length; 0 when it is cut short. No text is empty. */
function endOfText(bytes: Uint8Array, start: number, end: number): number {
  // Zero also when the byte is missing.
  const length = bytes[start] ?? 0
  const textEnd = start + 1 + length
  return length === 0 || textEnd > end ? 0 : textEnd
}

function bareMessage(key: string, bytes: Buffer): LinkDelivery {
  return { key, payload: bytes, isBinary: !isJson(bytes), source: undefined }
}

/** `subarray` of a Uint8Array lacks the methods of a Buffer, and costs more. */
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

/** A node id as text and as the two halves of its number. */
interface NodeNumbers {
  readonly text: string
  readonly high: number
  readonly low: number
}

/** The node that sent last: a process mostly has one. */
let ownNode: NodeNumbers = { text: '', high: 0, low: 0 }

/** Slots for known nodes; a power of two. Nodes that share a slot replace each other. */
const SLOT_COUNT = 256
const knownNodes = new Array<NodeNumbers | undefined>(SLOT_COUNT).fill(undefined)

function nodeNumbers(text: string): NodeNumbers {
  return { text, high: Number.parseInt(text.slice(0, 8), 16), low: Number.parseInt(text.slice(8), 16) }
}

function nodeText(high: number, low: number): string {
  const slot = (high ^ low) & (SLOT_COUNT - 1)
  const known = knownNodes[slot]
  if (known !== undefined && known.high === high && known.low === low) return known.text
  const text = high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')
  knownNodes[slot] = { text, high, low }
  return text
}
