import { WebMQError } from 'webmq-client/protocol'
import type { LinkContext, LinkEvents, LinkMessage, LogFollower, LogPlace } from '../remote/link.js'
import { NatsHeaders, NO_RESPONDERS } from './headers.js'
import { JetStreamApi } from './jetstream-api.js'
import type { LastSeen } from './last-seen.js'
import { LogConsumer } from './log-consumer.js'
import { LogStream, type LogStreamOptions } from './log-stream.js'
import type { NatsMessageBounds } from './parser.js'
import { PublishAcks } from './publish-acks.js'
import type { NatsSubjects } from './subjects.js'
import type { NatsWire } from './wire.js'

/** What a node knows of its log, over all its links. */
export interface NatsLogContext {
  readonly options: LogStreamOptions
  readonly lastSeen: LastSeen
  /** What subjects for answers begin with, and no others: of this link alone, so that what comes late for another does not come here. */
  readonly inbox: string
}

/** A link with a log. */
export interface NatsLogWire extends NatsWire {
  /** Whether messages with this key come by a live subscription. */
  isSubscribed(key: string): boolean
}

/** The numbers of the subscriptions. */
const [ANSWERS, ACKS, MESSAGES] = [1, 2, 3]
/** Those of a log; others have greater ones. */
export const LAST_LOG_SUBSCRIPTION = MESSAGES
const [ZERO, DOT] = [0x30, 0x2e]

/** The ordered log over one link: a stream of JetStream's. */
export class NatsLog {
  /** Behind it stands the sequence of the message that is to be acknowledged. */
  readonly ackPrefix: string
  readonly #context: NatsLogContext
  readonly #wire: NatsWire
  readonly #events: LinkEvents
  readonly #subjects: NatsSubjects
  readonly #api: JetStreamApi
  readonly #stream: LogStream
  readonly #consumer: LogConsumer
  readonly #acks: PublishAcks

  constructor(log: NatsLogContext, link: LinkContext, subjects: NatsSubjects, wire: NatsLogWire, events: LinkEvents) {
    this.ackPrefix = `${log.inbox}.p.`
    this.#context = log
    this.#wire = wire
    this.#events = events
    this.#subjects = subjects
    this.#api = new JetStreamApi(wire, `${log.inbox}.r.`)
    this.#stream = new LogStream(this.#api, link.namespace, subjects, log.options)
    this.#acks = new PublishAcks(this.#stream.name, events)
    this.#consumer = new LogConsumer({
      wire,
      api: this.#api,
      stream: this.#stream,
      subjects,
      lastSeen: log.lastSeen,
      events,
      logs: (key) => this.logs(key),
      isSubscribed: (key) => wire.isSubscribed(key),
      deliverSubject: `${log.inbox}.m`,
      heartbeatMs: link.heartbeatMs,
    })
  }

  /** Sees to it that there is a stream, before anything depends on it. */
  async open(): Promise<void> {
    const { inbox } = this.#context
    this.#wire.send(`SUB ${inbox}.r.* ${ANSWERS}\r\nSUB ${inbox}.p.* ${ACKS}\r\nSUB ${inbox}.m ${MESSAGES}\r\n`)
    await this.#stream.open()
  }

  follow(after: LogPlace | undefined, follower: LogFollower): Promise<void> {
    return this.#consumer.follow(after, follower)
  }

  logs(key: string): boolean {
    return this.#context.options.history.ruleOf(key) !== undefined
  }

  covers(pattern: string): boolean {
    return this.#context.options.history.covers(pattern)
  }

  /** Whether messages wait for their acknowledgement. */
  get isWaiting(): boolean {
    return this.#acks.isWaiting
  }

  /** A message of the log is sent. */
  sent(message: LinkMessage): void {
    this.#acks.sent(message)
  }

  /** Something has come for one of its subscriptions. */
  message(bytes: Buffer, bounds: NatsMessageBounds): void {
    if (bounds.subscription === MESSAGES) {
      this.#consumer.message(bytes, bounds)
      this.#acks.followed(this.#consumer.lastSequence)
      return
    }
    const { headersAt, payloadAt, payloadEnd } = bounds
    const isUnanswered = payloadAt > headersAt && new NatsHeaders(bytes, headersAt, payloadAt).status === NO_RESPONDERS
    const number = lastNumber(bytes, bounds)
    const text = bytes.toString('utf8', payloadAt, payloadEnd)
    if (bounds.subscription === ANSWERS) {
      if (isUnanswered) this.#api.unanswered(number)
      else this.#api.answered(number, text)
    } else {
      const reason = isUnanswered
        ? 'nobody takes what is logged: its stream is gone, or without a leader'
        : this.#acks.answered(number, text, this.#consumer.epoch)
      if (reason !== undefined) this.#wire.lose(new Error(reason))
    }
  }

  /** Whether the complaint about a subject could be told to whoever it concerns. */
  isAnswered(kind: 'publish' | 'subscription', subject: string, text: string): boolean {
    if (kind === 'publish') {
      const sequence = this.#acks.take((key) => this.#subjects.ofKey(key) === subject)
      if (sequence !== undefined) {
        this.#events.refused(sequence, new Error(text))
        return true
      }
    }
    if (!this.#api.isWaiting) return false
    const detail =
      `${text}; for history its user must be allowed to publish to $JS.API.>, $JS.FC.> and ${this.#subjects.prefix}>, ` +
      `and to subscribe to _INBOX.> and ${this.#subjects.prefix}>`
    this.#api.failAll(new WebMQError('E_BROKER_REFUSED', { detail }))
    return true
  }

  /** Called twice per heartbeat. */
  check(): void {
    this.#consumer.check()
  }

  /** The link is going to be closed. */
  end(): void {
    const { name } = this.#consumer
    // Nobody waits for the answer; the consumer would go by itself, some seconds later.
    if (name !== undefined)
      this.#wire.say(`$JS.API.CONSUMER.DELETE.${this.#stream.name}.${name}`, `${this.#context.inbox}.r.0`, '')
  }

  /** The link is over. */
  fail(cause: Error): void {
    this.#api.failAll(cause)
    this.#consumer.fail(cause)
  }
}

/** The number that is the last word of the subject. */
function lastNumber(bytes: Buffer, { subjectAt, subjectEnd }: NatsMessageBounds): number {
  let number = 0
  let scale = 1
  for (let at = subjectEnd - 1; at >= subjectAt && bytes[at] !== DOT; at--) {
    number += ((bytes[at] as number) - ZERO) * scale
    scale *= 10
  }
  return number
}
