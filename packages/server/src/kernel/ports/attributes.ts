import { WebMQError } from 'webmq-client/protocol'

/**
 * What a node says about a message beside its key and payload. Brokers carry them to all nodes and keep them in their
 * logs. No client sets them. A message without any costs nothing.
 */
export interface MessageAttributes {
  /** User of the connection that published it; absent for anonymous clients and for servers. At most 255 bytes. */
  readonly userId?: string
  /** When its node took it, Unix time in milliseconds. */
  readonly timeMs?: number
  /** Names the message for those who get it. 22 characters of `[A-Za-z0-9_-]`. */
  readonly id?: string
  /** It reaches live listeners only: it is not logged, although a rule may cover its key. */
  readonly isEphemeral?: true
  /** `traceparent` of W3C Trace Context, 55 ASCII characters. */
  readonly traceparent?: string
  /** The key of a message that travels under another, reserved one. */
  readonly key?: string
  /** It repeats the retained message at this offset, and reaches no listener: see `retained-copies.ts`. */
  readonly copyOf?: number
  /** Fingerprint of that message. */
  readonly copyFingerprint?: number
  /** Its place in a stream, as it is on the wire: `formatStreamPlace`. */
  readonly stream?: string
  /** Whose the stream is, see `stream-owner.ts`; absent for what its server writes, and where anybody may have written. */
  readonly owner?: string
  /** Of a message of a stream: CRC-32 of what its writer has sent, for retries. A hook may have changed the payload. */
  readonly checksum?: number
  /** It has a stream that goes on, as one text: see `roll-up.ts`. */
  readonly isInterim?: true
}

type TextName = 'userId' | 'id' | 'traceparent' | 'key' | 'stream' | 'owner'

/*
 * byte 0        version (high four bits) and flags
 * then entries  tag (1 byte), length (1 byte), value
 *
 * A reader skips entries whose tag it does not know, and ignores flags that it does not know.
 */
const VERSION = 0x10
const VERSION_MASK = 0xf0
const IS_EPHEMERAL = 1
const IS_INTERIM = 2
const TIME_TAG = 1
/** An unsigned number, big-endian: enough until the year 10889. */
const TIME_BYTES = 6
const TIME_HIGH = 2 ** 32
const TAGS = { userId: 2, id: 3, traceparent: 4, key: 5, stream: 8, owner: 9 } as const satisfies Record<
  TextName,
  number
>
const TEXT_NAMES = new Map<number, TextName>(Object.entries(TAGS).map(([name, tag]) => [tag, name as TextName]))
/** Up to this length a loop copies faster than a call. */
const MAX_LOOPED_CHARS = 48
const MAX_ASCII = 0x7f
const COPY_TAG = 6
/** A float, big-endian: any safe integer. */
const COPY_BYTES = 8
const FINGERPRINT_TAG = 7
const CHECKSUM_TAG = 10
/** An unsigned number, big-endian. */
const CRC_BYTES = 4
const ENTRY_HEAD_BYTES = 2
const MAX_VALUE_BYTES = 255

/** Most bytes of encoded attributes. What is larger is no message of a node. */
export const MAX_ATTRIBUTES_BYTES = 1_024

const scratch = Buffer.allocUnsafeSlow(MAX_ATTRIBUTES_BYTES)

/**
 * Encodes attributes, in a new allocation.
 * @throws {WebMQError} `E_MESSAGE_INVALID` for a text of more than 255 bytes, or for more than
 *   {@link MAX_ATTRIBUTES_BYTES} together.
 */
export function encodeAttributes(attributes: MessageAttributes): Buffer {
  const { timeMs, isEphemeral, isInterim, copyOf, copyFingerprint } = attributes
  scratch[0] = VERSION | (isEphemeral === true ? IS_EPHEMERAL : 0) | (isInterim === true ? IS_INTERIM : 0)
  let at = 1
  if (timeMs !== undefined) {
    scratch[at] = TIME_TAG
    scratch[at + 1] = TIME_BYTES
    scratch.writeUInt16BE(Math.floor(timeMs / TIME_HIGH) & 0xffff, at + 2)
    scratch.writeUInt32BE(timeMs % TIME_HIGH, at + 4)
    at += ENTRY_HEAD_BYTES + TIME_BYTES
  }
  if (copyOf !== undefined) {
    scratch[at] = COPY_TAG
    scratch[at + 1] = COPY_BYTES
    scratch.writeDoubleBE(copyOf, at + ENTRY_HEAD_BYTES)
    at += ENTRY_HEAD_BYTES + COPY_BYTES
  }
  at = writeCrc(at, FINGERPRINT_TAG, copyFingerprint)
  at = writeCrc(at, CHECKSUM_TAG, attributes.checksum)
  // Written out: a loop over the names takes twice the time.
  at = writeText(at, TAGS.userId, attributes.userId)
  at = writeText(at, TAGS.id, attributes.id)
  at = writeText(at, TAGS.traceparent, attributes.traceparent)
  at = writeText(at, TAGS.key, attributes.key)
  at = writeText(at, TAGS.stream, attributes.stream)
  at = writeText(at, TAGS.owner, attributes.owner)
  const bytes = Buffer.allocUnsafe(at)
  bytes.set(scratch.subarray(0, at))
  return bytes
}

/** Returns where the next entry begins. */
function writeCrc(at: number, tag: number, crc: number | undefined): number {
  if (crc === undefined) return at
  scratch[at] = tag
  scratch[at + 1] = CRC_BYTES
  return scratch.writeUInt32BE(crc, at + ENTRY_HEAD_BYTES)
}

/** Returns where the next entry begins. */
function writeText(at: number, tag: number, text: string | undefined): number {
  if (text === undefined) return at
  const start = at + ENTRY_HEAD_BYTES
  const end = start + (isShortAscii(text, start) ? text.length : Buffer.byteLength(text))
  const byteCount = end - start
  if (byteCount > MAX_VALUE_BYTES || end > MAX_ATTRIBUTES_BYTES)
    throw new WebMQError('E_MESSAGE_INVALID', { detail: `an attribute of ${byteCount} bytes is too long` })
  if (byteCount !== text.length || byteCount > MAX_LOOPED_CHARS) scratch.write(text, start)
  scratch[at] = tag
  scratch[at + 1] = byteCount
  return end
}

/** Writes a text of few characters while it is ASCII: a loop is faster than two calls. Otherwise it writes nothing of use. */
function isShortAscii(text: string, start: number): boolean {
  const { length } = text
  if (length > MAX_LOOPED_CHARS || start + length > MAX_ATTRIBUTES_BYTES) return false
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index)
    if (code > MAX_ASCII) return false
    scratch[start + index] = code
  }
  return true
}

/** Decodes attributes; `undefined` when they are cut short, too long, or of another version. */
export function decodeAttributes(bytes: Uint8Array): MessageAttributes | undefined {
  const { length } = bytes
  const [first = 0] = bytes
  if (length === 0 || length > MAX_ATTRIBUTES_BYTES || (first & VERSION_MASK) !== VERSION) return undefined
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, length)
  const attributes: { -readonly [Name in keyof MessageAttributes]: MessageAttributes[Name] } = {}
  if ((first & IS_EPHEMERAL) !== 0) attributes.isEphemeral = true
  if ((first & IS_INTERIM) !== 0) attributes.isInterim = true
  for (let at = 1; at < length; ) {
    const start = at + ENTRY_HEAD_BYTES
    const end = start + (buffer[at + 1] ?? length)
    if (end > length) return undefined
    const tag = buffer[at] ?? 0
    const name = TEXT_NAMES.get(tag)
    if (name !== undefined) attributes[name] = buffer.toString('utf8', start, end)
    else if (tag === TIME_TAG && end - start === TIME_BYTES) attributes.timeMs = buffer.readUIntBE(start, TIME_BYTES)
    else if (tag === COPY_TAG && end - start === COPY_BYTES) readCopyOf(attributes, buffer.readDoubleBE(start))
    else if (tag === FINGERPRINT_TAG && end - start === CRC_BYTES)
      attributes.copyFingerprint = buffer.readUInt32BE(start)
    else if (tag === CHECKSUM_TAG && end - start === CRC_BYTES) attributes.checksum = buffer.readUInt32BE(start)
    at = end
  }
  return attributes
}

/** Another program may have written it. */
function readCopyOf(attributes: { copyOf?: number }, offset: number): void {
  if (Number.isSafeInteger(offset) && offset >= 0) attributes.copyOf = offset
}
