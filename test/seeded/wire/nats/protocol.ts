/** What a client sends. */
export type ClientOperation =
  | { readonly verb: 'CONNECT'; readonly options: ConnectOptions }
  | { readonly verb: 'PING' | 'PONG' }
  | ({ readonly verb: 'PUB' } & NatsMessage)
  | { readonly verb: 'SUB'; readonly subject: string; readonly sid: string }
  | { readonly verb: 'UNSUB'; readonly sid: string; readonly maxCount: number }

export interface ConnectOptions {
  readonly name?: string
  readonly no_responders?: boolean
  readonly user?: string
  readonly pass?: string
  readonly auth_token?: string
}

export interface NatsMessage {
  readonly subject: string
  /** '' without one. */
  readonly reply: string
  /** With `NATS/1.0` and the empty line; of no bytes without headers. */
  readonly headers: Buffer
  readonly payload: Buffer
}

/** Its message is the text of the `-ERR` that the connection ends with. */
export class ProtocolViolation extends Error {}

export const NO_BYTES = Buffer.alloc(0)
const LINE_END = Buffer.from('\r\n')
const MAX_LINE_BYTES = 4_096

/** Reads the bytes of a client, in any pieces. */
export class ClientReader {
  readonly #maxPayloadBytes: number
  #rest: Buffer = NO_BYTES

  constructor(maxPayloadBytes: number) {
    this.#maxPayloadBytes = maxPayloadBytes
  }

  /** @throws {ProtocolViolation} for what the server answers with an error and the end. */
  *read(bytes: Uint8Array): Generator<ClientOperation> {
    this.#rest = Buffer.concat([this.#rest, bytes])
    for (;;) {
      const end = this.#rest.indexOf(LINE_END)
      if ((end < 0 ? this.#rest.length : end) > MAX_LINE_BYTES && !this.#isPayloadAwaited(end))
        throw new ProtocolViolation('Maximum Control Line Exceeded')
      if (end < 0) return
      const line = this.#rest.toString('utf8', 0, end)
      const [verb = '', ...words] = line.trim().split(/[ \t]+/)
      const isMessage = /^H?PUB$/i.test(verb)
      const length = isMessage ? this.#payloadBytes(words) : 0
      const next = end + LINE_END.length + (isMessage ? length + LINE_END.length : 0)
      if (this.#rest.length < next) return
      const payload = this.#rest.subarray(end + LINE_END.length, end + LINE_END.length + length)
      this.#rest = this.#rest.subarray(next)
      yield isMessage ? messageOf(verb, words, payload) : operationOf(verb, words, line)
    }
  }

  /** A long line may be the payload of a message that is not whole yet. */
  #isPayloadAwaited(end: number): boolean {
    return end >= 0 && end <= MAX_LINE_BYTES
  }

  #payloadBytes(words: readonly string[]): number {
    const length = Number(words.at(-1))
    if (!Number.isInteger(length) || length < 0) throw new ProtocolViolation('Unknown Protocol Operation')
    if (length > this.#maxPayloadBytes) throw new ProtocolViolation('Maximum Payload Violation')
    return length
  }
}

function messageOf(verb: string, words: readonly string[], bytes: Buffer): ClientOperation {
  const numberCount = verb.toUpperCase() === 'HPUB' ? 2 : 1
  const headerBytes = numberCount === 2 ? Number(words.at(-2)) : 0
  const [subject, reply = ''] = words.slice(0, -numberCount)
  if (subject === undefined || words.length > numberCount + 2) throw new ProtocolViolation('Unknown Protocol Operation')
  return { verb: 'PUB', subject, reply, headers: bytes.subarray(0, headerBytes), payload: bytes.subarray(headerBytes) }
}

function operationOf(verb: string, words: readonly string[], line: string): ClientOperation {
  const [first = '', second = ''] = words
  switch (verb.toUpperCase()) {
    case 'CONNECT':
      return { verb: 'CONNECT', options: JSON.parse(line.slice(verb.length)) as ConnectOptions }
    case 'PING':
    case 'PONG':
      return { verb: verb.toUpperCase() as 'PING' | 'PONG' }
    case 'SUB':
      if (words.length !== 2) throw new ProtocolViolation('Unknown Protocol Operation')
      return { verb: 'SUB', subject: first, sid: second }
    case 'UNSUB':
      return { verb: 'UNSUB', sid: first, maxCount: Number(second) }
    default:
      throw new ProtocolViolation('Unknown Protocol Operation')
  }
}

/** @param shown The subject that the client sees; a consumer's messages come with that of the stream. */
export function encodeMessage({ reply, headers, payload }: NatsMessage, shown: string, sid: string): Buffer {
  const total = headers.length + payload.length
  const sizes = headers.length === 0 ? total : `${headers.length} ${total}`
  const line = `${headers.length === 0 ? 'MSG' : 'HMSG'} ${shown} ${sid} ${reply}${reply === '' ? '' : ' '}${sizes}\r\n`
  return Buffer.concat([Buffer.from(line), headers, payload, LINE_END])
}

/** Headers of a message that says something of itself: `100 Idle Heartbeat`. */
export function statusHeaders(status: string, fields: Readonly<Record<string, string | number>> = {}): Buffer {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`NATS/1.0 ${status}\r\n${lines.join('')}\r\n`)
}

/** Value of a header; `undefined` without it. */
export function headerOf(headers: Buffer, name: string): string | undefined {
  if (headers.length === 0) return undefined
  const line = headers
    .toString()
    .split('\r\n')
    .find((each) => each.startsWith(`${name}:`))
  return line?.slice(name.length + 1).trim()
}

/** As Go's `%q` writes it, which the server has in its errors. */
export function quoted(text: string): string {
  const escaped = text.replace(/["\\]|(?! )[\p{C}\p{Z}]/gu, (character) => {
    if (character === '"' || character === '\\') return `\\${character}`
    const hex = (character.codePointAt(0) ?? 0).toString(16)
    return hex.length > 4 ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`
  })
  return `"${escaped}"`
}
