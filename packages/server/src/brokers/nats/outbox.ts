import { envelopeLength, writeEnvelope } from '../remote/envelope.js'
import type { LinkMessage } from '../remote/link.js'
import type { NatsSubjects } from './subjects.js'

/** Bytes that are written at once; also what one allocation holds at most, but for a larger message. */
const MAX_BLOCK_BYTES = 65_536
/** `PUB `, two spaces, a sequence, 8 digits, two line ends, an envelope. */
const MESSAGE_OVERHEAD_BYTES = 64
/** `HPUB`, more digits, what stands around an id in the headers and its length in the envelope. */
const ID_OVERHEAD_BYTES = 64
/** Keys whose line is remembered up to its last space. */
const MAX_CACHED_HEADS = 4_096
const [SPACE, CR, LF, ZERO] = [0x20, 0x0d, 0x0a, 0x30]
/** The envelope's own, at most, but for a message id. */
export const ENVELOPE_BYTES = 20
/** JetStream drops a message of the log whose id has come before. */
const ID_HEADERS = ['NATS/1.0\r\nNats-Msg-Id: ', '\r\n\r\n'] as const

/** Bytes that count for the server's `max_payload`, at most. */
export function payloadBytesOf({ payload, messageId, isLogged }: LinkMessage): number {
  const byteCount = payload.length + ENVELOPE_BYTES
  if (messageId === undefined) return byteCount
  const idBytes = messageId.length * (isLogged ? 2 : 1)
  return byteCount + 1 + idBytes + (isLogged ? ID_HEADERS.join('').length : 0)
}

/** Makes bytes of commands, many in a block. */
export class NatsOutbox {
  readonly #node: string
  readonly #subjects: NatsSubjects
  readonly #ackPrefix: string
  readonly #heads = new Map<string, Buffer>()
  #block = Buffer.alloc(0)
  #at = 0

  /** @param ackPrefix Subject that messages of the log are acknowledged to, with their sequence behind it. */
  constructor(node: string, subjects: NatsSubjects, ackPrefix = '') {
    this.#node = node
    this.#subjects = subjects
    this.#ackPrefix = ackPrefix
  }

  /**
   * @param commands Messages, and lines that end as the protocol wants it.
   * @returns blocks in order; nothing of them is written again
   */
  encode(commands: readonly (LinkMessage | string)[]): Buffer[] {
    const blocks: Buffer[] = []
    let left = 0
    for (const command of commands) left += this.#bound(command)
    for (const command of commands) {
      const bound = this.#bound(command)
      if (this.#at + bound > this.#block.length) {
        if (this.#at > 0) blocks.push(this.#block.subarray(0, this.#at))
        this.#block = Buffer.allocUnsafe(Math.max(bound, Math.min(left, MAX_BLOCK_BYTES)))
        this.#at = 0
      }
      left -= bound
      if (typeof command === 'string') this.#at += this.#block.write(command, this.#at)
      else this.#message(command)
    }
    if (this.#at > 0) blocks.push(this.#block.subarray(0, this.#at))
    this.#block = Buffer.alloc(0)
    this.#at = 0
    return blocks
  }

  /** Bytes that a command takes at most. */
  #bound(command: LinkMessage | string): number {
    // A unit of UTF-16 takes 3 bytes at most, and so does a character that is escaped.
    if (typeof command === 'string') return command.length * 3
    const { key, payload, messageId } = command
    const idBytes = messageId === undefined ? 0 : messageId.length * 2 + ID_OVERHEAD_BYTES
    const prefixBytes = this.#subjects.prefix.length + this.#ackPrefix.length
    return key.length * 3 + payload.length + prefixBytes + idBytes + MESSAGE_OVERHEAD_BYTES
  }

  #message(message: LinkMessage): void {
    const block = this.#block
    const { key, isLogged, messageId, sequence } = message
    let at: number
    if (isLogged && messageId !== undefined) at = this.#at + block.write(this.#identified(message, messageId), this.#at)
    else {
      const head = this.#head(key, isLogged)
      block.set(head, this.#at)
      at = this.#at + head.length
      if (isLogged) {
        at = writeNumber(block, at, sequence)
        block[at++] = SPACE
      }
      at = writeNumber(block, at, envelopeLength(message))
      block[at++] = CR
      block[at++] = LF
    }
    at = writeEnvelope(block, at, this.#node, message)
    block[at++] = CR
    block[at++] = LF
    this.#at = at
  }

  /** The line of a message with headers, and these. */
  #identified(message: LinkMessage, messageId: string): string {
    const { key, sequence } = message
    const headers = ID_HEADERS.join(messageId)
    const byteCount = headers.length + envelopeLength(message)
    return `HPUB ${this.#subjects.ofKey(key)} ${this.#ackPrefix}${sequence} ${headers.length} ${byteCount}\r\n${headers}`
  }

  /** A key is always logged, or never. */
  #head(key: string, isLogged: boolean): Buffer {
    const cached = this.#heads.get(key)
    if (cached !== undefined) return cached
    if (this.#heads.size >= MAX_CACHED_HEADS) this.#heads.clear()
    const head = Buffer.from(`PUB ${this.#subjects.ofKey(key)} ${isLogged ? this.#ackPrefix : ''}`)
    this.#heads.set(key, head)
    return head
  }
}

/** @returns where it ends */
function writeNumber(bytes: Buffer, start: number, number: number): number {
  let end = start + 1
  for (let rest = number; rest >= 10; rest = Math.trunc(rest / 10)) end++
  let rest = number
  for (let at = end - 1; at >= start; at--) {
    bytes[at] = ZERO + (rest % 10)
    rest = Math.trunc(rest / 10)
  }
  return end
}
