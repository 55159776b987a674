import { type ApiError, REFUSALS } from './api-errors.js'
import { headerOf, type NatsMessage } from './protocol.js'
import { isMatch } from './subjects.js'

export interface StoredMessage extends NatsMessage {
  readonly sequence: number
  /** Unix time in nanoseconds; no two messages of a stream have the same. */
  readonly timeNs: bigint
}

/** As the API has it. */
export interface StreamConfig {
  readonly name: string
  readonly description?: string
  readonly subjects: readonly string[]
  readonly retention: string
  readonly storage: string
  readonly discard: string
  readonly num_replicas: number
  /** -1, as in the next ones: any number. */
  readonly max_msgs: number
  readonly max_bytes: number
  readonly max_msg_size: number
  /** Nanoseconds, as in the next one; 0: for ever. */
  readonly max_age: number
  readonly duplicate_window: number
}

/** What stays of a stream when the server ends. */
export interface StreamSnapshot {
  readonly config: StreamConfig
  readonly createdNs: string
  readonly lastSequence: number
  readonly lastNs: string
  readonly messages: readonly (readonly [
    sequence: number,
    timeNs: string,
    subject: string,
    headers: string,
    payload: string,
  ])[]
}

export type StoreOutcome = { readonly sequence: number; readonly isDuplicate: boolean } | { readonly error: ApiError }

const NS_PER_MS = 1_000_000n
/** What the server's file has besides the subject, the headers and the payload. */
const RECORD_BYTES = 30
const HEADER_RECORD_BYTES = 4
const ID_HEADER = 'Nats-Msg-Id'

/** The messages of a stream, and what becomes of them. */
export class ModelStream {
  config: StreamConfig
  readonly createdNs: bigint
  readonly #messages = new Map<number, StoredMessage>()
  /** Ids of messages by the time at which they came. */
  #ids = new Map<string, { readonly sequence: number; readonly timeNs: bigint }>()
  /** Of the oldest message; one more than the last when there is none. */
  firstSequence = 1
  lastSequence = 0
  #lastNs = 0n
  #byteCount = 0
  #ageTimer: NodeJS.Timeout | undefined

  constructor(config: StreamConfig, createdNs: bigint) {
    this.config = config
    this.createdNs = createdNs
  }

  get messageCount(): number {
    return this.#messages.size
  }

  isFor(subject: string): boolean {
    const tokens = subject.split('.')
    return this.config.subjects.some((pattern) => isMatch(pattern.split('.'), tokens))
  }

  get(sequence: number): StoredMessage | undefined {
    return this.#messages.get(sequence)
  }

  /** Sequences between the first and the last that have no message. */
  get deleted(): number[] {
    const deleted: number[] = []
    if (this.lastSequence - this.firstSequence + 1 === this.#messages.size) return deleted
    for (let at = this.firstSequence; at <= this.lastSequence; at++) if (!this.#messages.has(at)) deleted.push(at)
    return deleted
  }

  /** Messages from a sequence on. @param filter A subject's pattern; '' for all. */
  countFrom(sequence: number, filter = ''): number {
    if (filter === '' && sequence <= this.firstSequence) return this.#messages.size
    if (filter === '' && this.lastSequence - this.firstSequence + 1 === this.#messages.size)
      return Math.max(0, this.lastSequence - sequence + 1)
    let count = 0
    for (const message of this.#messages.values())
      if (message.sequence >= sequence && isWanted(message, filter)) count++
    return count
  }

  /** The next message at a sequence or after it. */
  next(sequence: number, filter: string): StoredMessage | undefined {
    for (let at = Math.max(sequence, this.firstSequence); at <= this.lastSequence; at++) {
      const message = this.#messages.get(at)
      if (message !== undefined && isWanted(message, filter)) return message
    }
    return undefined
  }

  store(message: NatsMessage): StoreOutcome {
    const nowNs = BigInt(Date.now()) * NS_PER_MS
    const id = headerOf(message.headers, ID_HEADER)
    this.#forgetIds(nowNs)
    const known = id === undefined ? undefined : this.#ids.get(id)
    if (known !== undefined) return { sequence: known.sequence, isDuplicate: true }
    const { max_msg_size } = this.config
    if (max_msg_size >= 0 && message.headers.length + message.payload.length > max_msg_size)
      return { error: REFUSALS.messageTooLarge }
    const timeNs = nowNs > this.#lastNs ? nowNs : this.#lastNs + 1n
    const sequence = ++this.lastSequence
    this.#lastNs = timeNs
    this.#add({ ...message, sequence, timeNs })
    this.trim()
    return { sequence, isDuplicate: false }
  }

  /** Lets go of what the limits do not allow. */
  trim(): void {
    const { max_msgs, max_bytes } = this.config
    while (this.#messages.size > 0 && max_msgs > 0 && this.#messages.size > max_msgs) this.remove(this.firstSequence)
    while (this.#messages.size > 0 && max_bytes > 0 && this.#byteCount > max_bytes) this.remove(this.firstSequence)
    this.#trimByAge()
  }

  /** @returns whether it was there */
  remove(sequence: number): boolean {
    const message = this.#messages.get(sequence)
    if (message === undefined) return false
    this.#messages.delete(sequence)
    this.#byteCount -= bytesOf(message)
    while (this.firstSequence <= this.lastSequence && !this.#messages.has(this.firstSequence)) this.firstSequence++
    return true
  }

  /** The server has ended, and this is what it finds: all but its newest entries. */
  recover(lostCount: number): void {
    this.stop()
    const last = Math.max(0, this.lastSequence - lostCount)
    for (let at = this.lastSequence; at > last; at--) this.remove(at)
    this.lastSequence = last
    this.firstSequence = Math.min(this.firstSequence, last + 1)
    this.#lastNs = this.#messages.get(last)?.timeNs ?? this.#lastNs
    // The ids are not stored: they are those of the messages that are left.
    this.#ids = new Map()
    for (const { headers, sequence, timeNs } of this.#messages.values()) {
      const id = headerOf(headers, ID_HEADER)
      if (id !== undefined) this.#ids.set(id, { sequence, timeNs })
    }
  }

  stop(): void {
    clearTimeout(this.#ageTimer)
    this.#ageTimer = undefined
  }

  snapshot(): StreamSnapshot {
    return {
      config: this.config,
      createdNs: String(this.createdNs),
      lastSequence: this.lastSequence,
      lastNs: String(this.#lastNs),
      messages: [...this.#messages.values()].map(({ sequence, timeNs, subject, headers, payload }) => [
        sequence,
        String(timeNs),
        subject,
        headers.toString('base64'),
        payload.toString('base64'),
      ]),
    }
  }

  static restored({ config, createdNs, lastSequence, lastNs, messages }: StreamSnapshot): ModelStream {
    const stream = new ModelStream(config, BigInt(createdNs))
    stream.firstSequence = messages[0]?.[0] ?? lastSequence + 1
    stream.lastSequence = lastSequence
    stream.#lastNs = BigInt(lastNs)
    for (const [sequence, timeNs, subject, headers, payload] of messages) {
      const bytes = { headers: Buffer.from(headers, 'base64'), payload: Buffer.from(payload, 'base64') }
      stream.#add({ subject, reply: '', ...bytes, sequence, timeNs: BigInt(timeNs) })
    }
    stream.recover(0)
    return stream
  }

  /** `state` of an answer of the API. */
  state(isDetailed: boolean): Record<string, unknown> {
    const [first, last] = [this.#messages.get(this.firstSequence), this.lastSequence]
    const deleted = this.deleted
    return {
      messages: this.#messages.size,
      bytes: this.#byteCount,
      first_seq: last === 0 ? 0 : this.firstSequence,
      first_ts: timeText(first?.timeNs),
      last_seq: last,
      last_ts: timeText(last === 0 ? undefined : this.#lastNs),
      ...(deleted.length === 0 ? {} : { num_deleted: deleted.length, ...(isDetailed ? { deleted } : {}) }),
    }
  }

  #add(message: StoredMessage): void {
    this.#messages.set(message.sequence, message)
    this.#byteCount += bytesOf(message)
    const id = headerOf(message.headers, ID_HEADER)
    if (id !== undefined) this.#ids.set(id, { sequence: message.sequence, timeNs: message.timeNs })
  }

  #forgetIds(nowNs: bigint): void {
    const oldestNs = nowNs - BigInt(this.config.duplicate_window)
    for (const [id, { timeNs }] of this.#ids) {
      if (timeNs > oldestNs) return
      this.#ids.delete(id)
    }
  }

  #trimByAge(): void {
    this.stop()
    const { max_age } = this.config
    if (max_age === 0) return
    const oldestNs = BigInt(Date.now()) * NS_PER_MS - BigInt(max_age)
    for (;;) {
      const first = this.#messages.get(this.firstSequence)
      if (first === undefined) return
      if (first.timeNs > oldestNs) {
        this.#ageTimer = setTimeout(() => this.#trimByAge(), Number((first.timeNs - oldestNs) / NS_PER_MS) + 1)
        return
      }
      this.remove(first.sequence)
    }
  }
}

/** As RFC 3339 has it. */
export function timeText(timeNs: bigint | undefined): string {
  if (timeNs === undefined) return '0001-01-01T00:00:00Z'
  const fraction = String(timeNs % 1_000_000_000n)
    .padStart(9, '0')
    .replace(/0+$/, '')
  const seconds = new Date(Number(timeNs / NS_PER_MS)).toISOString().slice(0, -'.000Z'.length)
  return `${seconds}${fraction === '' ? '' : `.${fraction}`}Z`
}

function bytesOf({ subject, headers, payload }: NatsMessage): number {
  const extra = headers.length === 0 ? 0 : HEADER_RECORD_BYTES
  return RECORD_BYTES + extra + Buffer.byteLength(subject) + headers.length + payload.length
}

function isWanted({ subject }: NatsMessage, filter: string): boolean {
  return filter === '' || isMatch(filter.split('.'), subject.split('.'))
}
