import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { ConsumeMessage, MessageProperties } from 'amqplib/callback_api'
import { isKey } from 'webmq-client/protocol'
import type { LinkDelivery, LinkMessage, LinkSource } from '../remote/link.js'

/*
 * A message of a node says who published it in its message id, `webmq-<node>-<sequence>-<mark of the key>`, where there is an
 * origin `-<origin>`, and where its publisher has given it an id `:<id>`: the same each time that it is sent, so that consumers of any kind can find
 * duplicates by it. One short string costs less than any table of headers: 100,000 messages took 13.3 µs each with it and 16.5 to 17.0 with two
 * headers (amqplib's encoder). The mark is for those who publish a message that they got anew, with all its properties: to another key it is not
 * ours any more.
 */
const ID_PREFIX = 'webmq-'
const NODE_CHARS = 16
const SEQUENCE_AT = ID_PREFIX.length + NODE_CHARS + 1
const NODE_PREFIX = /^webmq-[\da-f]{16}-$/
const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
const DASH = 0x2d
const COLON = 0x3a
/** A message id has 255 bytes at most, and 57 are ours; an id that is longer than this is known by its hash. */
const MAX_OWN_ID_CHARS = 128

/** Content type of a text message, and of one that is not. */
export const TEXT_TYPE = 'application/json'
export const BINARY_TYPE = 'application/octet-stream'

/** What the message ids of a node begin with. */
export function idPrefixOf(node: string): string {
  return `${ID_PREFIX}${node}-`
}

/** The rest of the id of one message. */
export function idEndOf({ sequence, key, origin, messageId }: LinkMessage): string {
  const end = origin === undefined ? `${sequence}-${markOf(key)}` : `${sequence}-${markOf(key)}-${origin}`
  return messageId === undefined ? end : `${end}:${shortened(messageId)}`
}

/** Only ever compared, and not always short or ASCII when an application has chosen it. */
function shortened(messageId: string): string {
  if (messageId.length <= MAX_OWN_ID_CHARS && /^[\w-]+$/.test(messageId)) return messageId
  return createHash('sha256').update(messageId).digest('base64url')
}

function markOf(key: string): number {
  let mark = 0
  for (let at = 0; at < key.length; at++) mark = (mark * 31 + key.charCodeAt(at)) & 0xffff
  return mark
}

/** A node that was heard, as its message ids begin. */
interface HeardNode {
  readonly prefix: Buffer
  readonly text: string
}

/** Nodes that are remembered; more of them cost a look at the text of each id. */
const MAX_HEARD_NODES = 16

/** Reads who published a message. Remembers nodes: those that publish are few. */
export class SourceReader {
  readonly #heard: HeardNode[] = []
  #oldest = 0
  readonly #numbers = [0, 0, 0]
  /** Where the publisher's own id begins in what was read last; 0 when there is none. */
  #ownIdAt = 0

  /**
   * @param bytes The message id is in them, from `start` to `end`.
   * @returns `undefined` for a message that no node has published.
   */
  read(bytes: Buffer, start: number, end: number, key: string): LinkSource | undefined {
    if (end - start <= SEQUENCE_AT) return undefined
    const node = this.#nodeAt(bytes, start)
    if (node === undefined) return undefined
    const count = this.#readNumbers(bytes, start + SEQUENCE_AT, end)
    const [sequence = 0, mark, origin] = this.#numbers
    if (count < 2 || !Number.isSafeInteger(sequence) || sequence === 0 || mark !== markOf(key)) return undefined
    return { node, sequence, origin: count === 3 ? origin : undefined }
  }

  /** The id that the publisher has given to the message whose source was read last. */
  ownId(bytes: Buffer, end: number): string | undefined {
    return this.#ownIdAt === 0 ? undefined : bytes.toString('latin1', this.#ownIdAt, end)
  }

  #nodeAt(bytes: Buffer, start: number): string | undefined {
    for (const { prefix, text } of this.#heard) if (isAt(bytes, start, prefix)) return text
    const prefix = bytes.toString('latin1', start, start + SEQUENCE_AT)
    if (!NODE_PREFIX.test(prefix)) return undefined
    const text = prefix.slice(ID_PREFIX.length, -1)
    this.#heard[this.#oldest] = { prefix: Buffer.from(prefix), text }
    this.#oldest = (this.#oldest + 1) % MAX_HEARD_NODES
    return text
  }

  /** Reads numbers with a dash between them, up to a colon; returns how many there are, 0 when it is something else. */
  #readNumbers(bytes: Buffer, start: number, end: number): number {
    this.#ownIdAt = 0
    let index = 0
    let number = 0
    let digitCount = 0
    for (let at = start; at < end; at++) {
      const char = bytes[at] ?? 0
      if (char >= DIGIT_0 && char <= DIGIT_9) {
        number = number * 10 + (char - DIGIT_0)
        digitCount++
      } else if (char === COLON && digitCount > 0 && at + 1 < end) {
        this.#ownIdAt = at + 1
        break
      } else {
        if (char !== DASH || digitCount === 0 || index >= 2) return 0
        this.#numbers[index++] = number
        number = 0
        digitCount = 0
      }
    }
    this.#numbers[index] = number
    return digitCount === 0 ? 0 : index + 1
  }
}

/** Whether `part` stands there. From its end: the beginning is the same for all nodes. */
function isAt(bytes: Buffer, start: number, part: Buffer): boolean {
  for (let at = part.length - 1; at >= 0; at--) if (bytes[start + at] !== part[at]) return false
  return true
}

const NO_BYTES = Buffer.alloc(0)

/** What amqplib has read, as a delivery; `undefined` when it cannot be a message. */
export function deliveryOf(message: ConsumeMessage, sources: SourceReader): LinkDelivery | undefined {
  const { fields, properties, content } = message
  const key = fields.routingKey
  const id = typeof properties.messageId === 'string' ? Buffer.from(properties.messageId) : NO_BYTES
  const source = sources.read(id, 0, id.length, key)
  // A node has checked what it published.
  if (source !== undefined) {
    const messageId = sources.ownId(id, id.length)
    return { key, payload: content, isBinary: ownKindOf(properties) === 'binary', source, messageId }
  }
  const kind = kindOf(properties, content)
  if (!isKey(key) || kind === 'malformed') return undefined
  return { key, payload: content, isBinary: kind === 'binary', source }
}

/** What a message is that a node has published. */
function ownKindOf({ contentType }: MessageProperties): 'text' | 'binary' {
  return contentType === BINARY_TYPE ? 'binary' : 'text'
}

/** What a message is that somebody else has published: by its content type, or by a look at it when it has none. */
function kindOf(properties: MessageProperties, payload: Uint8Array): 'text' | 'binary' | 'malformed' {
  const { contentType, contentEncoding } = properties
  // Compressed, say: not to be read as text.
  if (contentEncoding !== undefined && !/^(utf-?8|identity|)$/i.test(String(contentEncoding))) return 'binary'
  if (contentType === undefined || contentType === '') return isJson(payload) ? 'text' : 'binary'
  if (!/^\s*application\/([^;\s]+\+)?json\s*(;|$)/i.test(String(contentType))) return 'binary'
  return isUtf8(payload) ? 'text' : 'malformed'
}

function isJson(payload: Uint8Array): boolean {
  if (!isUtf8(payload)) return false
  try {
    JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString())
    return true
  } catch {
    // The parser has no other way to say it.
    return false
  }
}
