import { envelopeLength, writeEnvelope } from '../remote/envelope.js'
import type { LinkMessage } from '../remote/link.js'
import type { NatsSubjects } from './nats-subjects.js'

/** Bytes that are written at once; also what one allocation holds at most, but for a larger message. */
const MAX_BLOCK_BYTES = 65_536
/** `PUB `, a space, 8 digits, two line ends, an envelope. */
const MESSAGE_OVERHEAD_BYTES = 48
/** Keys whose line is remembered up to its last space. */
const MAX_CACHED_HEADS = 4_096
const [CR, LF, ZERO] = [0x0d, 0x0a, 0x30]
/** The envelope's own, at most. */
export const ENVELOPE_BYTES = 20

/** Makes bytes of commands, many in a block. */
export class NatsOutbox {
  readonly #node: string
  readonly #subjects: NatsSubjects
  readonly #heads = new Map<string, Buffer>()
  #block = Buffer.alloc(0)
  #at = 0

  constructor(node: string, subjects: NatsSubjects) {
    this.#node = node
    this.#subjects = subjects
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
    return command.key.length * 3 + command.payload.length + this.#subjects.prefix.length + MESSAGE_OVERHEAD_BYTES
  }

  #message(message: LinkMessage): void {
    const block = this.#block
    const head = this.#head(message.key)
    block.set(head, this.#at)
    let at = this.#at + head.length
    at = writeNumber(block, at, envelopeLength(message))
    block[at++] = CR
    block[at++] = LF
    at = writeEnvelope(block, at, this.#node, message)
    block[at++] = CR
    block[at++] = LF
    this.#at = at
  }

  #head(key: string): Buffer {
    const cached = this.#heads.get(key)
    if (cached !== undefined) return cached
    if (this.#heads.size >= MAX_CACHED_HEADS) this.#heads.clear()
    const head = Buffer.from(`PUB ${this.#subjects.ofKey(key)} `)
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
