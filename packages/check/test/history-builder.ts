import { matches } from '../src/judging/keys.js'
import type {
  Answer,
  AttemptRecord,
  ListenerRecord,
  MessageRecord,
  PageRecord,
  RunRecord,
  Selection,
} from '../src/judging/record.js'
import { createRunRecord } from '../src/judging/record.js'
import type { Rules } from '../src/judging/rules.js'

/** One log that survives, for the keys `a.…`; the others are not logged. */
export const RULES: Rules = {
  logged: ['a.#'],
  log: 'shared',
  isDurable: true,
  keeps: { messageCount: 1_000, ageMs: 600_000 },
  dedupe: { windowMs: 120_000, maxIds: 100_000, coversUnlogged: true, isExact: true },
  answerWithinMs: 1_000,
  liveWithinMs: 2_000,
  deliverWithinMs: 500,
  settleMs: 100,
  leaseMs: 300,
}

/** Time between two events, and before the end. */
const STEP_MS = 1
const END_MS = 1_000
const PAYLOAD_BYTES = 50

/** Writes down a run by hand, for tests of the judge. Nothing in it needs to be right. */
export class HistoryBuilder {
  readonly record: RunRecord = createRunRecord()
  nowMs = 0

  step(ms = STEP_MS): number {
    this.nowMs += ms
    return this.nowMs
  }

  /** Publishes a message with the next number of its publisher, and is answered. */
  publish(key: string, position?: string, publisher = 'p'): MessageRecord {
    let record = this.record.publishers.find(({ name }) => name === publisher)
    if (record === undefined) {
      record = { name: publisher, messages: [], echoes: [] }
      this.record.publishers.push(record)
    }
    const sequence = record.messages.length
    const id = `${publisher}-${sequence}`
    const message: MessageRecord = { id, sequence, key, payloadBytes: PAYLOAD_BYTES, isNoecho: false, attempts: [] }
    record.messages.push(message)
    this.attempt(message, { outcome: 'ok', isDuplicate: false, ...(position === undefined ? {} : { position }) })
    return message
  }

  attempt(
    message: MessageRecord,
    result: Omit<AttemptRecord, 'connection' | 'sentAtMs' | 'settledAtMs'>,
  ): AttemptRecord {
    const attempt: AttemptRecord = { connection: 0, sentAtMs: this.step(), settledAtMs: this.step(), ...result }
    message.attempts.push(attempt)
    return attempt
  }

  listener(name: string, ...patterns: string[]): ListenerBuilder {
    return new ListenerBuilder(this, name, patterns)
  }

  read(
    pattern: string,
    asked: Selection,
    answer: Partial<Answer>,
    messages: readonly [MessageRecord, string][],
  ): PageRecord {
    const page: PageRecord = {
      connection: 0,
      asked,
      askedAtMs: this.step(),
      settledAtMs: this.step(),
      answer: answerOf({ replayed: messages.length, ...answer }),
      messages: messages.map(([message, position]) => received(message, position)),
    }
    this.record.reads.push({ owner: 'reader', verb: 'history', pattern, asked, pages: [page] })
    return page
  }

  /** The run is over, and then its listeners close their connections, as those of a play do. */
  end(): RunRecord {
    this.record.endedAtMs = this.step(END_MS)
    for (const { events, isOfClient } of this.record.listeners) {
      const connection = events.at(-1)?.connection ?? 0
      if (!isOfClient) events.push({ atMs: this.step(), connection, what: 'ended' })
    }
    return this.record
  }
}

export class ListenerBuilder {
  readonly record: ListenerRecord
  readonly #history: HistoryBuilder
  #connection = 0

  constructor(history: HistoryBuilder, name: string, patterns: readonly string[]) {
    this.#history = history
    this.record = { name, patterns, events: [] }
    history.record.listeners.push(this.record)
    this.#connect()
  }

  asked(selection: Selection = {}, listen = 0, isPage = false): this {
    this.record.events.push({ ...this.#at(), what: 'asked', listen, isPage, ...selection })
    return this
  }

  ok(answer: Partial<Answer> = {}, listen = 0): this {
    this.record.events.push({ ...this.#at(), what: 'ok', listen, ...answerOf(answer) })
    return this
  }

  /** Asks and is answered, with no replay. */
  listens(position?: string, listen = 0): this {
    return this.asked({}, listen).ok({ position }, listen)
  }

  live(message: MessageRecord, position = '-'): this {
    this.record.events.push({ ...this.#at(), what: 'message', listen: undefined, ...received(message, position) })
    return this
  }

  replayed(message: MessageRecord, position: string, listen = 0): this {
    this.record.events.push({ ...this.#at(), what: 'message', listen, ...received(message, position) })
    return this
  }

  gap(reason: string, listen = 0): this {
    this.record.events.push({ ...this.#at(), what: 'gap', listen, reason })
    return this
  }

  pong(position: string): this {
    this.record.events.push({ ...this.#at(), what: 'pong', position })
    return this
  }

  refused(code: string, isRetryable: boolean, listen = 0): this {
    this.record.events.push({ ...this.#at(), what: 'refused', listen, code, isRetryable })
    return this
  }

  /** Loses its connection, and opens another. */
  cut(): this {
    this.record.events.push({ ...this.#at(), what: 'ended' })
    const connection = this.#history.record.connections[this.#connection]
    if (connection !== undefined) connection.closed = { code: 1006, by: 'client', atMs: this.#history.nowMs }
    this.#connect()
    return this
  }

  /** Which of its listens match a key. */
  matching(key: string): number[] {
    return this.record.patterns.flatMap((pattern, index) => (matches(pattern, key) ? [index] : []))
  }

  #connect(): void {
    const { connections } = this.#history.record
    this.#connection = connections.length
    const beganAtMs = this.#history.step()
    const { name } = this.record
    connections.push({
      number: this.#connection,
      owner: name,
      node: 'n',
      beganAtMs,
      requests: [],
      stalls: [],
      breaches: [],
    })
  }

  #at() {
    return { atMs: this.#history.step(), connection: this.#connection }
  }
}

function received({ key, id, payloadBytes }: MessageRecord, position: string) {
  return { key, id, payloadBytes, position }
}

function answerOf(answer: Partial<Answer>): Answer {
  return { position: undefined, isRecovered: false, gap: undefined, replayed: 0, isMore: false, ...answer }
}
