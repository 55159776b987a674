import type { Accepted } from '../../ports/broker.js'
import { envelopeLength, writeEnvelope } from '../remote/envelope.js'
import type { LinkMessage } from '../remote/link.js'

/** What all calls of a link have in common. */
export interface LogCallOptions {
  /** Of the script that appends. */
  readonly sha: string
  readonly keys: readonly string[]
  /** The first arguments, as the scripts have them. */
  readonly leadArguments: readonly string[]
  readonly maxMessages: number
  readonly maxBytes: number
  /** `undefined` when some messages are kept whatever their age. */
  readonly maxAgeMs: number | undefined
  /** 0 when ids of messages are not remembered. */
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
}

/** Messages of one call: a script stops the server for 3 to 6 us each. */
const MAX_MESSAGES = 64
const MAX_BYTES = 262_144
const ID_ARGUMENTS = 2
const LINE_END = 0x0a0d

/** Makes the calls of one link that append to the log. */
export class LogCalls {
  readonly #options: LogCallOptions
  readonly #head: string
  readonly #isDeduplicating: boolean
  readonly #argumentCount: number

  constructor(options: LogCallOptions) {
    const { sha, keys, leadArguments, maxMessages, maxBytes, maxAgeMs, dedupeWindowMs, dedupeMaxIds } = options
    const bounds = [maxMessages, maxBytes, maxAgeMs ?? ''].map(String)
    const head = ['EVALSHA', sha, String(keys.length), ...keys, ...leadArguments, ...bounds]
    this.#options = options
    this.#head = bulks(head)
    this.#argumentCount = head.length + ID_ARGUMENTS
    this.#isDeduplicating = dedupeWindowMs > 0 && dedupeMaxIds > 0
  }

  /** The call that a message goes with: this one while it has room, else another. */
  callFor(message: LinkMessage, last: unknown): LogCall {
    const id = this.#isDeduplicating ? (message.messageId ?? '') : ''
    const call =
      last instanceof LogCall && last.hasRoom ? last : new LogCall((count, hasIds) => this.#headOf(count, hasIds))
    call.add(message, id)
    return call
  }

  #headOf(messageCount: number, hasIds: boolean): string {
    const { dedupeWindowMs, dedupeMaxIds } = this.#options
    const ids = hasIds ? [String(dedupeWindowMs), String(dedupeMaxIds)] : ['', '']
    return `*${this.#argumentCount + 2 * messageCount}\r\n${this.#head}${bulks(ids)}`
  }
}

/** One call that appends messages to the log, in their order, and its answer. */
export class LogCall {
  readonly #headOf: (messageCount: number, hasIds: boolean) => string
  readonly #messages: LinkMessage[] = []
  readonly #ids: string[] = []
  #messageBytes = 0
  #hasIds = false
  #head: string | undefined

  constructor(headOf: (messageCount: number, hasIds: boolean) => string) {
    this.#headOf = headOf
  }

  get hasRoom(): boolean {
    return this.#head === undefined && this.#messages.length < MAX_MESSAGES && this.#messageBytes < MAX_BYTES
  }

  /** Of the whole call. Once it was asked for, nothing is added any more. */
  get byteCount(): number {
    this.#head ??= this.#headOf(this.#messages.length, this.#hasIds)
    return Buffer.byteLength(this.#head) + this.#messageBytes
  }

  get sequences(): readonly number[] {
    return this.#messages.map(({ sequence }) => sequence)
  }

  add(message: LinkMessage, id: string): void {
    const envelopeBytes = envelopeLength(message, message.key)
    this.#messages.push(message)
    this.#ids.push(id)
    this.#hasIds ||= id !== ''
    const idBytes = Buffer.byteLength(id)
    // Each between `$<length>\r\n` and `\r\n`.
    this.#messageBytes += envelopeBytes + String(envelopeBytes).length + idBytes + String(idBytes).length + 10
  }

  /** Returns where it ends. */
  write(bytes: Buffer, start: number, node: string): number {
    let at = start + bytes.write(this.#head ?? '', start)
    for (const [index, message] of this.#messages.entries()) {
      at += bytes.write(`$${envelopeLength(message, message.key)}\r\n`, at)
      at = writeEnvelope(bytes, at, node, message, message.key)
      at = bytes.writeUInt16LE(LINE_END, at)
      at += bytes.write(bulk(this.#ids[index] ?? ''), at)
    }
    return at
  }

  /** Reads `<epoch> <first offset> [<offset of the first with that id>,…]`. */
  accepted(answer: string, tell: (sequence: number, accepted: Accepted) => void): void {
    const [epoch = '', first, known] = answer.split(' ')
    const duplicates = known?.split(',')
    let offset = Number(first)
    for (const [index, { sequence }] of this.#messages.entries()) {
      const before = duplicates?.[index] ?? ''
      const isDuplicate = before !== ''
      tell(sequence, { position: { epoch, offset: isDuplicate ? Number(before) : offset++ }, isDuplicate })
    }
  }
}

function bulks(texts: readonly string[]): string {
  return texts.map(bulk).join('')
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}
