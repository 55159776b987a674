/** Where the parts of a message are among the bytes that hold it. */
export interface NatsMessageBounds {
  /** The number that the subscription was given. */
  readonly subscription: number
  readonly subjectAt: number
  readonly subjectEnd: number
  /** The subject for replies; empty when there is none. */
  readonly replyAt: number
  readonly replyEnd: number
  /** Headers end where the payload begins; empty when there are none. */
  readonly headersAt: number
  readonly payloadAt: number
  readonly payloadEnd: number
}

/** What a {@link NatsParser} finds. */
export interface NatsProtocolEvents {
  /** A message; both arguments are valid until the call returns. */
  message(bytes: Buffer, bounds: NatsMessageBounds): void
  /** Any other line, without its end: `PONG`, `-ERR 'text'`, `INFO {json}`. */
  line(text: string): void
}

const [SPACE, CR, LF, ZERO, NINE, LETTER_H, LETTER_M] = [0x20, 0x0d, 0x0a, 0x30, 0x39, 0x48, 0x4d]
/** After `MSG `; after `HMSG ` it is one more. */
const SUBJECT_OFFSET = 4
/** The line of a message is at most 4 KiB by default (`max_control_line`); that with the addresses of a large cluster is longer. */
const MAX_LINE_BYTES = 65_536
/** The server's own upper limit of `max_payload`. */
const MAX_PAYLOAD_BYTES = 64 * 1024 ** 2
const END_BYTES = 2

/** A message whose payload has not come completely. */
interface PartialMessage {
  /** Subject, subject for replies, headers, payload, and the end of the line behind it. */
  readonly bytes: Buffer
  filled: number
}

/**
 * Reads what a NATS server sends ({@link https://docs.nats.io/reference/reference-protocols/nats-protocol}). It is written for messages: one pass over their
 * line, no objects. The parser of the library takes about as long for a message as everything else together.
 */
export class NatsParser {
  readonly #events: NatsProtocolEvents
  /** A line that has not come completely. */
  #rest: Buffer | undefined
  #partial: PartialMessage | undefined
  /** Of the message that was read last. */
  readonly #bounds = {
    subscription: 0,
    subjectAt: 0,
    subjectEnd: 0,
    replyAt: 0,
    replyEnd: 0,
    headersAt: 0,
    payloadAt: 0,
    payloadEnd: 0,
  }

  constructor(events: NatsProtocolEvents) {
    this.#events = events
  }

  /**
   * @param chunk Bytes as they came.
   * @throws {Error} For what is not NATS; nothing can be read after that.
   */
  push(chunk: Buffer): void {
    let bytes = chunk
    let at = this.#partial === undefined ? 0 : this.#fill(this.#partial, bytes)
    if (this.#rest !== undefined && at < bytes.length) {
      bytes = Buffer.concat([this.#rest, at === 0 ? bytes : bytes.subarray(at)])
      at = 0
      this.#rest = undefined
    }
    while (at < bytes.length) {
      const next = isMessageAt(bytes[at]) ? this.#message(bytes, at) : this.#line(bytes, at)
      if (next < 0) {
        if (bytes.length - at > MAX_LINE_BYTES) throw new Error('the server sends lines that are too long')
        this.#rest = bytes.subarray(at)
        return
      }
      at = next
    }
  }

  /** @returns where the next thing begins, or -1 when the line is not complete */
  #message(bytes: Buffer, at: number): number {
    if (!this.#head(bytes, at)) return -1
    const { payloadEnd } = this.#bounds
    const end = payloadEnd + END_BYTES
    if (end > bytes.length) return this.#begin(bytes)
    if (bytes[payloadEnd] !== CR || bytes[payloadEnd + 1] !== LF) throw notNats(bytes, at)
    this.#events.message(bytes, this.#bounds)
    return end
  }

  /**
   * `MSG <subject> <subscription> [reply-to] <bytes>`, or `HMSG` with the bytes of the headers before those of headers and payload.
   * @returns whether the line is complete
   */
  #head(bytes: Buffer, start: number): boolean {
    const { length } = bytes
    const bounds = this.#bounds
    const headed = bytes[start] === LETTER_H ? 1 : 0
    let at = start + SUBJECT_OFFSET + headed
    if (at < length && bytes[at - 1] !== SPACE) throw notNats(bytes, start)
    bounds.subjectAt = at
    while (at < length && bytes[at] !== SPACE) at++
    bounds.subjectEnd = at
    let field = 0
    let fieldAt = at + 1
    let number = 0
    let previous = 0
    for (at++; at < length; at++) {
      const byte = bytes[at] as number
      if (byte >= ZERO && byte <= NINE) number = number * 10 + byte - ZERO
      else if (byte === SPACE) {
        if (field === 0) bounds.subscription = number
        else if (field === 1) {
          // With another one behind it, what was read was a subject for replies.
          bounds.replyAt = fieldAt
          bounds.replyEnd = at
        }
        previous = number
        field++
        fieldAt = at + 1
        number = 0
      } else if (byte === LF) {
        const fieldCount = field - headed
        const headerBytes = headed === 0 ? 0 : previous
        if (bytes[at - 1] !== CR || !(number <= MAX_PAYLOAD_BYTES) || !(headerBytes <= number))
          throw notNats(bytes, start)
        if (fieldCount === 1) bounds.replyAt = bounds.replyEnd = bounds.subjectEnd
        else if (fieldCount !== 2) throw notNats(bytes, start)
        bounds.headersAt = at + 1
        bounds.payloadAt = at + 1 + headerBytes
        bounds.payloadEnd = at + 1 + number
        return true
      } else if (byte !== CR) {
        if (field !== 1) throw notNats(bytes, start)
        number = Number.NaN
      }
    }
    return false
  }

  #begin(bytes: Buffer): number {
    const bounds = this.#bounds
    const { subjectAt, subjectEnd, replyAt, replyEnd, headersAt } = bounds
    const subjectBytes = subjectEnd - subjectAt
    const headBytes = subjectBytes + replyEnd - replyAt
    const message = Buffer.allocUnsafe(headBytes + bounds.payloadEnd - headersAt + END_BYTES)
    bytes.copy(message, 0, subjectAt, subjectEnd)
    bytes.copy(message, subjectBytes, replyAt, replyEnd)
    const filled = headBytes + bytes.copy(message, headBytes, headersAt)
    bounds.subjectAt = 0
    bounds.subjectEnd = subjectBytes
    bounds.replyAt = subjectBytes
    bounds.replyEnd = headBytes
    bounds.headersAt = headBytes
    bounds.payloadAt += headBytes - headersAt
    bounds.payloadEnd += headBytes - headersAt
    this.#partial = { bytes: message, filled }
    return bytes.length
  }

  /** @returns where the next thing begins in the chunk */
  #fill(partial: PartialMessage, chunk: Buffer): number {
    const { bytes } = partial
    const taken = chunk.copy(bytes, partial.filled)
    partial.filled += taken
    if (partial.filled < bytes.length) return taken
    this.#partial = undefined
    const { payloadEnd } = this.#bounds
    if (bytes[payloadEnd] !== CR || bytes[payloadEnd + 1] !== LF) throw notNats(bytes, 0)
    this.#events.message(bytes, this.#bounds)
    return taken
  }

  #line(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LF, at)
    if (end < 0) return -1
    this.#events.line(bytes.toString('utf8', at, bytes[end - 1] === CR ? end - 1 : end))
    return end + 1
  }
}

/** No other line of a server begins with these letters. */
function isMessageAt(byte: number | undefined): boolean {
  return byte === LETTER_M || byte === LETTER_H
}

/** What is shown of what came instead. */
const MAX_SHOWN_BYTES = 40

function notNats(bytes: Buffer, at: number): Error {
  return new Error(`this is not NATS: ${JSON.stringify(bytes.toString('latin1', at, at + MAX_SHOWN_BYTES))}`)
}
