import type { LinkDelivery } from '../remote/link.js'
import {
  BASIC,
  BASIC_DELIVER,
  BODY,
  FLAGS_AT,
  FRAME_END,
  FRAME_HEAD_BYTES,
  HEADER,
  METHOD,
  OUR_FLAGS,
  OUR_LOG_FLAGS,
  PAYLOAD_SIZE_AT,
  PROPERTIES_AT,
  SIZE_AT,
  shortText,
} from './frames.js'
import {
  DELIVERED_BYTES,
  DELIVERED_HEAD,
  DELIVERED_OFFSET_AT,
  DELIVERED_TIME_AT,
  OFFSET_HEAD,
  TIME_CHARS,
} from './log-header.js'
import { BINARY_TYPE, type SourceReader, TEXT_TYPE } from './message-properties.js'

/** What a {@link DeliveryReader} reads for. */
export interface DeliveryReaderOptions {
  readonly channel: number
  readonly consumerTag: string
  readonly sources: SourceReader
  /** @param logged Its place, when it comes from the log; overwritten for the next. */
  readonly take: (deliveryTag: number, delivery: LinkDelivery, logged: LoggedAt) => void
  /** The consumer is one of the log, all of whose messages have a table of headers. */
  readonly isLog?: boolean
}

/** Where and when a message was logged. */
export interface LoggedAt {
  readonly offset: number
  readonly timeMs: number
}

const TEXT = shortText(TEXT_TYPE)
const BINARY = shortText(BINARY_TYPE)
const DELIVERY_TAG_BYTES = 8
const HIGH_HALF = 2 ** 32
const DIGIT_0 = 0x30

/**
 * Reads deliveries in place. amqplib makes some twenty objects of one; what a node has published always looks alike, and what does not, or
 * is not complete yet, is left to amqplib.
 */
export class DeliveryReader {
  readonly #options: DeliveryReaderOptions
  /** How the content of a method frame begins: method, consumer. */
  readonly #method: Buffer
  readonly #flags: number
  readonly #tableBytes: number
  readonly #logged = { offset: 0, timeMs: 0 }

  constructor(options: DeliveryReaderOptions) {
    this.#options = options
    this.#method = Buffer.concat([Buffer.of(0, BASIC, 0, BASIC_DELIVER), shortText(options.consumerTag)])
    this.#flags = options.isLog === true ? OUR_LOG_FLAGS : OUR_FLAGS
    this.#tableBytes = options.isLog === true ? DELIVERED_BYTES : 0
  }

  /** Takes the deliveries that follow each other from `start` on; returns where they end. */
  read(bytes: Buffer, start: number): number {
    let end = start
    for (let next = this.#readOne(bytes, end); next > end; next = this.#readOne(bytes, end)) end = next
    return end
  }

  /** Takes the delivery at `at`; returns where it ends, `at` when it is none for us. */
  #readOne(bytes: Buffer, at: number): number {
    const { channel, sources, take } = this.#options
    const headerAt = frameEnd(bytes, at, METHOD, channel)
    const bodyAt = headerAt === 0 ? 0 : frameEnd(bytes, headerAt, HEADER, channel)
    if (bodyAt === 0 || !isAt(bytes, at + FRAME_HEAD_BYTES, this.#method)) return at

    const tagAt = at + FRAME_HEAD_BYTES + this.#method.length
    const exchangeAt = tagAt + DELIVERY_TAG_BYTES + 1
    const keyAt = exchangeAt + 1 + (bytes[exchangeAt] ?? 0)
    const keyEnd = keyAt + 1 + (bytes[keyAt] ?? 0)
    const propertiesAt = headerAt + PROPERTIES_AT
    const isOurs = keyEnd + 1 === headerAt && uint16(bytes, headerAt + FLAGS_AT) === this.#flags
    const isBinary = isAt(bytes, propertiesAt, BINARY)
    if (!isOurs || !(isBinary || isAt(bytes, propertiesAt, TEXT))) return at

    const tableAt = propertiesAt + (isBinary ? BINARY : TEXT).length
    if (this.#tableBytes > 0 && !this.#readTable(bytes, tableAt)) return at
    // Before the message id there is the delivery mode.
    const idAt = tableAt + this.#tableBytes + 1
    const idEnd = idAt + 1 + (bytes[idAt] ?? 0)
    const byteCount = uint32(bytes, headerAt + PAYLOAD_SIZE_AT)
    if (idEnd + 1 !== bodyAt || uint32(bytes, headerAt + PAYLOAD_SIZE_AT - 4) !== 0) return at

    const end = byteCount === 0 ? bodyAt : frameEnd(bytes, bodyAt, BODY, channel)
    const payloadAt = byteCount === 0 ? bodyAt : bodyAt + FRAME_HEAD_BYTES
    if (end === 0 || (byteCount > 0 && end !== payloadAt + byteCount + 1)) return at
    const key = bytes.toString('utf8', keyAt + 1, keyEnd)
    const source = sources.read(bytes, idAt + 1, idEnd, key)
    if (source === undefined) return at
    const payload = bytes.subarray(payloadAt, payloadAt + byteCount)
    const messageId = sources.ownId(bytes, idEnd)
    const delivery = { key, payload, isBinary, source, messageId }
    take(uint64(bytes, tagAt), delivery, this.#logged)
    return end
  }

  /** Reads the table of headers of a message of the log; whether it is as a node writes it. */
  #readTable(bytes: Buffer, at: number): boolean {
    if (at + DELIVERED_BYTES > bytes.length || !isAt(bytes, at, DELIVERED_HEAD)) return false
    if (!isAt(bytes, at + DELIVERED_TIME_AT + TIME_CHARS, OFFSET_HEAD)) return false
    let timeMs = 0
    for (let index = 0; index < TIME_CHARS; index++) {
      const digit = (bytes[at + DELIVERED_TIME_AT + index] ?? 0) - DIGIT_0
      if (digit < 0 || digit > 9) return false
      timeMs = timeMs * 10 + digit
    }
    this.#logged.timeMs = timeMs
    this.#logged.offset = uint64(bytes, at + DELIVERED_OFFSET_AT)
    return true
  }
}

/** Where a frame of this type and channel ends that begins at `at`; 0 when there is none, or not all of it. */
function frameEnd(bytes: Buffer, at: number, type: number, channel: number): number {
  if (bytes.length - at <= FRAME_HEAD_BYTES || bytes[at] !== type || uint16(bytes, at + 1) !== channel) return 0
  const end = at + FRAME_HEAD_BYTES + uint32(bytes, at + SIZE_AT) + 1
  return end <= bytes.length && bytes[end - 1] === FRAME_END ? end : 0
}

function isAt(bytes: Buffer, start: number, part: Buffer): boolean {
  for (let at = 0; at < part.length; at++) if (bytes[start + at] !== part[at]) return false
  return true
}

function uint16(bytes: Buffer, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
}

function uint32(bytes: Buffer, at: number): number {
  return ((uint16(bytes, at) << 16) | uint16(bytes, at + 2)) >>> 0
}

function uint64(bytes: Buffer, at: number): number {
  return uint32(bytes, at) * HIGH_HALF + uint32(bytes, at + 4)
}
