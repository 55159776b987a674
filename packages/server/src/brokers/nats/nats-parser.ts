/** What a {@link NatsParser} finds. */
export interface NatsProtocolEvents {
  /**
   * A message.
   * @param bytes Holds the message; valid until the call returns.
   * @param subjectAt Where the subject is, and where it ends.
   * @param payloadAt Where the payload is, and where it ends.
   */
  message(
    subscription: number,
    bytes: Buffer,
    subjectAt: number,
    subjectEnd: number,
    payloadAt: number,
    payloadEnd: number,
  ): void
  /** Any other line, without its end: `PONG`, `-ERR 'text'`, `INFO {json}`. */
  line(text: string): void
}

const [SPACE, CR, LF, ZERO, NINE, LETTER_M] = [0x20, 0x0d, 0x0a, 0x30, 0x39, 0x4d]
/** After `MSG `. */
const SUBJECT_OFFSET = 4
/** The line of a message is at most 4 KiB by default (`max_control_line`); that with the addresses of a large cluster is longer. */
const MAX_LINE_BYTES = 65_536
/** The server's own upper limit of `max_payload`. */
const MAX_PAYLOAD_BYTES = 64 * 1024 ** 2
const END_BYTES = 2

/** A message whose payload has not come completely. */
interface PartialMessage {
  readonly subscription: number
  /** Subject, payload, and the end of the line behind it. */
  readonly bytes: Buffer
  readonly subjectEnd: number
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
  #subjectEnd = 0
  #subscription = 0
  #payloadBytes = 0

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
      const next = bytes[at] === LETTER_M ? this.#message(bytes, at) : this.#line(bytes, at)
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
    const payloadAt = this.#head(bytes, at)
    if (payloadAt < 0) return -1
    const subjectAt = at + SUBJECT_OFFSET
    const payloadEnd = payloadAt + this.#payloadBytes
    const end = payloadEnd + END_BYTES
    if (end > bytes.length) return this.#begin(bytes, subjectAt, payloadAt)
    if (bytes[payloadEnd] !== CR || bytes[payloadEnd + 1] !== LF) throw notNats(bytes, at)
    this.#events.message(this.#subscription, bytes, subjectAt, this.#subjectEnd, payloadAt, payloadEnd)
    return end
  }

  /** `MSG <subject> <subscription> [reply-to] <bytes>`; returns where the payload begins, or -1 when the line is not complete. */
  #head(bytes: Buffer, start: number): number {
    const { length } = bytes
    let at = start + SUBJECT_OFFSET
    if (at < length && bytes[at - 1] !== SPACE) throw notNats(bytes, start)
    while (at < length && bytes[at] !== SPACE) at++
    this.#subjectEnd = at
    let field = 0
    let number = 0
    for (at++; at < length; at++) {
      const byte = bytes[at] as number
      if (byte >= ZERO && byte <= NINE) number = number * 10 + byte - ZERO
      else if (byte === SPACE) {
        if (field === 0) this.#subscription = number
        // What was read was a subject for replies.
        field++
        number = 0
      } else if (byte === LF) {
        if (field === 0 || field > 2 || bytes[at - 1] !== CR || !(number <= MAX_PAYLOAD_BYTES))
          throw notNats(bytes, start)
        this.#payloadBytes = number
        return at + 1
      } else if (byte !== CR) {
        if (field !== 1) throw notNats(bytes, start)
        number = Number.NaN
      }
    }
    return -1
  }

  #begin(bytes: Buffer, subjectAt: number, payloadAt: number): number {
    const subjectBytes = this.#subjectEnd - subjectAt
    const message = Buffer.allocUnsafe(subjectBytes + this.#payloadBytes + END_BYTES)
    bytes.copy(message, 0, subjectAt, this.#subjectEnd)
    const filled = subjectBytes + bytes.copy(message, subjectBytes, payloadAt)
    this.#partial = { subscription: this.#subscription, bytes: message, subjectEnd: subjectBytes, filled }
    return bytes.length
  }

  /** @returns where the next thing begins in the chunk */
  #fill(partial: PartialMessage, chunk: Buffer): number {
    const { bytes, subjectEnd, subscription } = partial
    const taken = chunk.copy(bytes, partial.filled)
    partial.filled += taken
    if (partial.filled < bytes.length) return taken
    this.#partial = undefined
    const payloadEnd = bytes.length - END_BYTES
    if (bytes[payloadEnd] !== CR || bytes[payloadEnd + 1] !== LF) throw notNats(bytes, 0)
    this.#events.message(subscription, bytes, 0, subjectEnd, subjectEnd, payloadEnd)
    return taken
  }

  #line(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LF, at)
    if (end < 0) return -1
    this.#events.line(bytes.toString('utf8', at, bytes[end - 1] === CR ? end - 1 : end))
    return end + 1
  }
}

/** What is shown of what came instead. */
const MAX_SHOWN_BYTES = 40

function notNats(bytes: Buffer, at: number): Error {
  return new Error(`this is not NATS: ${JSON.stringify(bytes.toString('latin1', at, at + MAX_SHOWN_BYTES))}`)
}
