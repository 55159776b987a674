import type { ApiError, JetStreamManager, PubAck } from '@nats-io/jetstream'
import type { Msg, PublishOptions } from '@nats-io/transport-node'
import type { Position } from '../../ports/broker.js'
import type { LogPlace } from '../../ports/shared-log.js'
import type { LinkLog, LinkMessage, LogFollower } from '../remote/link.js'
import type { NatsCore, NatsJetStream } from './connect.js'
import { GenerationGuard, type LastSeen } from './generation-guard.js'
import { explained } from './jetstream-errors.js'
import type { NatsLink } from './link.js'
import { LogFollow } from './log-follow.js'
import { LogStream, type LogStreamOptions } from './log-stream.js'
import { OrderedConsumer } from './ordered-consumer.js'

export interface NatsLogContext {
  readonly core: NatsCore
  readonly jetStream: NatsJetStream
  readonly manager: JetStreamManager
  readonly options: LogStreamOptions
  /** The node's, across all its links. */
  readonly lastSeen: LastSeen
  /** Prefix of the subjects for answers, and of no other subject. */
  readonly inbox: string
}

/** Status of the answer when nobody receives a request. */
const NO_RESPONDERS = 503
const API_PREFIX = '$JS.API.'
const NOT_STORED = 'JetStream has not stored it'

/** The log over one link: a stream of JetStream. */
export class NatsLog implements LinkLog {
  readonly link: NatsLink
  readonly context: NatsLogContext
  readonly stream: LogStream
  readonly guard: GenerationGuard
  readonly consumer: OrderedConsumer
  readonly following: LogFollow
  readonly acks: PublishAcks
  /** The sequence of the acknowledged message follows it. */
  readonly #ackPrefix: string
  #isOpening = false

  constructor(link: NatsLink, context: NatsLogContext) {
    this.link = link
    this.context = context
    this.#ackPrefix = `${context.inbox}.p.`
    this.stream = new LogStream(this)
    this.guard = new GenerationGuard(this)
    this.following = new LogFollow(this)
    this.consumer = new OrderedConsumer(this)
    this.acks = new PublishAcks(this)
  }

  explained(cause: unknown): Error {
    const { connection, subjects } = this.link
    return explained(cause, this.context.jetStream, connection.info, subjects.prefix)
  }

  async open(): Promise<void> {
    this.#isOpening = true
    this.link.connection.subscribe(`${this.#ackPrefix}*`, {
      callback: (error, message) => {
        if (error === null) this.#answered(message)
      },
    })
    await this.stream.open()
    this.#isOpening = false
  }

  follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    return this.following.follow(after, follower)
  }

  async end(): Promise<LogPlace> {
    const { epoch, lastSequence } = await this.stream.state()
    return { epoch, offset: lastSequence }
  }

  risk(): Promise<string | undefined> {
    return this.stream.risk()
  }

  async isSigned(): Promise<boolean> {
    return (await this.stream.state()).rules === this.rules
  }

  unsign(): Promise<void> {
    return this.stream.unsign()
  }

  begin(): Promise<never> {
    return this.guard.begin()
  }

  get rules(): string {
    return this.context.options.history.fingerprint
  }

  logs(key: string): boolean {
    return this.context.options.history.ruleOf(key) !== undefined
  }

  /** Sends a message. The library's JetStream `publish` makes one request per message, which takes four times as long. */
  publish(subject: string, bytes: Uint8Array, message: LinkMessage, isLastOfTurn: boolean): void {
    const { core, jetStream } = this.context
    const { sequence, messageId } = message
    const options: PublishOptions = { reply: this.acks.sent(message, isLastOfTurn) ? this.#ackPrefix + sequence : '' }
    if (messageId !== undefined) {
      options.headers = core.headers()
      options.headers.set(jetStream.PubHeaders.MsgIdHdr, messageId)
    }
    this.link.connection.publish(subject, bytes, options)
  }

  /** Whether the error belongs to a request, whose caller gets it. */
  isAnswered(kind: 'publish' | 'subscription', subject: string, text: string): boolean {
    if (kind === 'publish') {
      const sequence = this.acks.take((key) => this.link.subjects.ofKey(key) === subject)
      if (sequence !== undefined) {
        this.link.events.refused(sequence, new Error(text))
        return true
      }
      // The request fails by itself.
      return subject.startsWith(API_PREFIX)
    }
    // The requests that wait for answers there fail by themselves.
    return this.#isOpening && subject.startsWith(this.context.inbox)
  }

  fail(cause: Error): void {
    this.acks.over()
    this.consumer.stop()
    this.following.fail(cause)
  }

  /** An error thrown here would end the library's reader. */
  #answered(message: Msg): void {
    this.link.liveness.alive()
    try {
      const sequence = Number(message.subject.slice(this.#ackPrefix.length))
      const reason =
        message.headers?.code === NO_RESPONDERS
          ? 'nobody stores logged messages: the stream is gone, or has no leader'
          : this.acks.answered(sequence, message.string())
      if (reason !== undefined) this.link.lose(new Error(reason))
    } catch (cause) {
      this.link.lose(cause instanceof Error ? cause : new Error(String(cause)))
    }
  }
}

type PublishAnswer = PubAck & { readonly error?: ApiError }

/**
 * Logged messages that were sent and that the log has not brought yet.
 *
 * The log itself confirms a message. So the stream is asked for an answer once per turn, and for each message with an
 * id, which it may know already. It stores the messages of one connection in their order: a message that the log has
 * not brought before a later one was not stored, unless it is a duplicate. A JetStream without a leader drops messages and
 * says nothing. They are refused, and not sent again behind later ones of their publisher.
 */
export class PublishAcks {
  readonly #log: NatsLog
  readonly #sent = new Map<number, LinkMessage>()
  /** Of which an answer is awaited, or has come before the log has brought the message. */
  readonly #asked = new Map<number, 'unanswered' | 'stored'>()
  /** The newest that the log has brought. */
  #broughtSequence = 0
  /** The stream has refused a message: from then on it says of each message why. */
  #asksAll = false

  constructor(log: NatsLog) {
    this.#log = log
  }

  get isWaiting(): boolean {
    return this.#sent.size > 0
  }

  /**
   * A message is about to be sent. @returns whether to ask for an answer
   * @throws {Error} when the log has later ones of this node: an earlier link has sent it, and it was not stored.
   */
  sent(message: LinkMessage, isLastOfTurn: boolean): boolean {
    const { sequence, messageId } = message
    if (sequence < this.#broughtSequence) throw new Error(NOT_STORED)
    const isAsked = isLastOfTurn || this.#asksAll || messageId !== undefined
    this.#sent.set(sequence, message)
    if (isAsked) this.#asked.set(sequence, 'unanswered')
    return isAsked
  }

  /** The log has brought it. */
  stored(sequence: number): void {
    this.#broughtSequence = Math.max(this.#broughtSequence, sequence)
    this.#sent.delete(sequence)
    const isAnswered = this.#asked.get(sequence) === 'stored'
    if (isAnswered) this.#asked.delete(sequence)
    this.#refuseBefore(sequence, isAnswered)
  }

  /** The link is lost: what stands behind later messages if it is sent again is refused. */
  over(): void {
    this.#refuseBefore(this.#broughtSequence, true)
  }

  /** @param areAnswersHere No answer to an earlier message is on its way. */
  #refuseBefore(sequence: number, areAnswersHere: boolean): void {
    for (const earlier of this.#sent.keys()) {
      if (earlier > sequence) return
      if (!areAnswersHere && this.#asked.has(earlier)) continue
      this.#sent.delete(earlier)
      this.#asked.delete(earlier)
      this.#log.link.events.refused(earlier, new Error(NOT_STORED))
    }
  }

  /** @returns an error text if another log than the followed one has answered: the stream is gone, or has lost its end */
  answered(sequence: number, text: string): string | undefined {
    if (!this.#asked.delete(sequence)) return undefined
    const { events } = this.#log.link
    const { stream, seq, duplicate, error } = JSON.parse(text) as PublishAnswer
    if (error !== undefined) {
      this.#sent.delete(sequence)
      events.refused(sequence, new Error(`JetStream: ${error.description}`))
      // The log drops the second copy of what was stored.
      this.#asksAll = true
      for (const earlier of [...this.#sent.values()])
        if (earlier.sequence < sequence && !this.#asked.has(earlier.sequence)) this.#log.link.sender.send(earlier, true)
    } else if (stream !== this.#log.stream.name)
      return `the stream ${stream} stores messages that belong to ${this.#log.stream.name}`
    else if (duplicate === true) {
      this.#sent.delete(sequence)
      events.confirmed(sequence, false, { epoch: this.#log.following.epoch, offset: seq })
    } else if (!this.#sent.has(sequence)) this.#refuseBefore(sequence, true)
    else if (seq <= this.#log.following.lastSequence)
      return `JetStream stores at ${seq} what is published after ${this.#log.following.lastSequence}: it serves two logs`
    else this.#asked.set(sequence, 'stored')
    return undefined
  }

  /** Removes the oldest message whose key `isIt` is true for; returns its sequence. */
  take(isIt: (key: string) => boolean): number | undefined {
    for (const [sequence, { key }] of this.#sent) {
      if (!isIt(key)) continue
      this.#sent.delete(sequence)
      this.#asked.delete(sequence)
      return sequence
    }
    return undefined
  }
}
