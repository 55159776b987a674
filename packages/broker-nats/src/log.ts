import type { ApiError, JetStreamManager, PubAck } from '@nats-io/jetstream'
import type { Msg, PublishOptions } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import {
  decodeEnvelope,
  type LinkEvents,
  type LinkLog,
  type LinkMessage,
  type LogFollower,
  logged,
  reasonOf,
} from 'webmq-server/brokers'
import type { LogPlace, Position } from 'webmq-server/ports'
import type { NatsCore, NatsJetStream } from './connect.js'
import { GenerationGuard, type LastSeen } from './generation-guard.js'
import type { NatsLink } from './link.js'
import { type FollowOwner, LogFollow } from './log-follow.js'
import { LogStream, type LogStreamOptions } from './log-stream.js'
import { OrderedConsumer } from './ordered-consumer.js'
import { type StreamMessage, storedAtMs } from './stream-message.js'

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
export class NatsLog implements LinkLog, FollowOwner {
  readonly #link: NatsLink
  readonly #context: NatsLogContext
  readonly #stream: LogStream
  readonly #guard: GenerationGuard
  readonly consumer: OrderedConsumer
  readonly #following: LogFollow
  readonly acks: PublishAcks
  /** The sequence of the acknowledged message follows it. */
  readonly #ackPrefix: string
  #isOpening = false

  constructor(link: NatsLink, context: NatsLogContext) {
    this.#link = link
    this.#context = context
    const { jetStream, manager, options, lastSeen, inbox } = context
    const { connection, subjects } = link
    const client = { jetStream, manager, connection, subjects }
    this.#ackPrefix = `${inbox}.p.`
    const stream = new LogStream(client, options)
    this.#stream = stream
    this.#guard = new GenerationGuard(stream, lastSeen, (text) => connection.publish(subjects.ofLog, text))
    const following = new LogFollow(stream, this.#guard, lastSeen, this)
    this.#following = following
    this.consumer = new OrderedConsumer(client, stream.name, inbox, link.context.heartbeatMs, following)
    this.acks = new PublishAcks(stream.name, following, link.events, (message) => link.sender.send(message, true))
  }

  async open(): Promise<void> {
    this.#isOpening = true
    this.#link.connection.subscribe(`${this.#ackPrefix}*`, {
      callback: (error, message) => {
        if (error === null) this.#answered(message)
      },
    })
    await this.#stream.open()
    this.#isOpening = false
  }

  follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    return this.#following.follow(after, follower)
  }

  async end(): Promise<LogPlace> {
    const { epoch, lastSequence } = await this.#stream.state()
    return { epoch, offset: lastSequence }
  }

  risk(): Promise<string | undefined> {
    return this.#stream.risk()
  }

  async isMarked(): Promise<boolean> {
    return (await this.#stream.state()).rules === this.#stream.rules
  }

  unmark(): Promise<void> {
    return this.#stream.unmark()
  }

  begin(): Promise<never> {
    return this.#guard.begin()
  }

  logs(key: string): boolean {
    return this.#context.options.history.ruleOf(key) !== undefined
  }

  /** Whether the log has all messages of the pattern. */
  covers(pattern: string): boolean {
    return this.#context.options.history.covers(pattern)
  }

  lose(cause: Error): void {
    this.#link.lose(cause)
  }

  deliver(message: StreamMessage, fingerprint: number, follower: LogFollower | undefined): void {
    const { subjects, events, subscriptions, context } = this.#link
    const { subject, data, sequence } = message
    const key = subjects.keyOf(subject)
    if (key === undefined) {
      if (subject === subjects.ofLog) this.#following.noted(Buffer.from(data).toString(), sequence)
      else if (!subjects.isOwn(subject)) events.malformed(`the subject ${subject} is that of no key`)
      return
    }
    // A stream may store more than the rules say: reserved keys, and keys that its subjects cannot exclude.
    const isLogged = this.logs(key)
    if (!isLogged && subscriptions.isLive(key)) return
    const delivery = decodeEnvelope(key, data)
    if (delivery?.source?.node === context.node) this.acks.stored(delivery.source.sequence)
    const defect = `an envelope that is cut or of another version, for ${key}`
    if (delivery === undefined && isLogged) follower?.malformed(sequence, fingerprint, defect, key)
    else if (delivery === undefined) events.malformed(defect, key)
    // A bundle comes from a node that does not log this key. It has one offset for all its messages.
    else if (!isLogged || delivery.source?.isBundle === true) {
      events.deliver(delivery)
      if (isLogged) follower?.unlogged(sequence, fingerprint, key)
    } else follower?.message(logged(delivery, sequence, fingerprint, storedAtMs(message)))
  }

  /** Sends a message. The library's JetStream `publish` makes one request per message, which takes four times as long. */
  publish(subject: string, bytes: Uint8Array, message: LinkMessage, isLastOfTurn: boolean): void {
    const { core, jetStream } = this.#context
    const { sequence, messageId } = message
    const options: PublishOptions = { reply: this.acks.sent(message, isLastOfTurn) ? this.#ackPrefix + sequence : '' }
    if (messageId !== undefined) {
      options.headers = core.headers()
      options.headers.set(jetStream.PubHeaders.MsgIdHdr, messageId)
    }
    this.#link.connection.publish(subject, bytes, options)
  }

  /** Whether the error belongs to a request, whose caller gets it. */
  isAnswered(kind: 'publish' | 'subscription', subject: string, text: string): boolean {
    if (kind === 'publish') {
      const sequence = this.acks.take((key) => this.#link.subjects.ofKey(key) === subject)
      if (sequence !== undefined) {
        this.#link.events.refused(sequence, new Error(text))
        return true
      }
      // The request fails by itself.
      return subject.startsWith(API_PREFIX)
    }
    // The requests that wait for answers there fail by themselves.
    return this.#isOpening && subject.startsWith(this.#context.inbox)
  }

  fail(cause: Error): void {
    this.acks.over()
    this.consumer.stop()
    this.#following.fail(cause)
  }

  /** An error thrown here would end the library's reader. */
  #answered(message: Msg): void {
    this.#link.liveness.alive()
    try {
      const sequence = Number(message.subject.slice(this.#ackPrefix.length))
      const reason =
        message.headers?.code === NO_RESPONDERS
          ? 'nobody stores logged messages: the stream is gone, or has no leader'
          : this.acks.answered(sequence, message.string())
      if (reason !== undefined) this.#link.lose(new Error(reason))
    } catch (cause) {
      this.#link.lose(cause instanceof Error ? cause : new Error(String(cause)))
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
  readonly #stream: string
  readonly #following: LogFollow
  readonly #events: LinkEvents
  readonly #resend: (message: LinkMessage) => void
  readonly #sent = new Map<number, LinkMessage>()
  /** Of which an answer is awaited, or has come before the log has brought the message. */
  readonly #asked = new Map<number, 'unanswered' | 'stored'>()
  /** The newest that the log has brought. */
  #broughtSequence = 0
  /** Duplicates of what was read, it seems, and the check that this is the stream which knows them. */
  #duplicates: { readonly sequence: number; readonly offset: number }[] = []
  #isChecking = false
  /** The stream has refused a message: from then on it says of each message why. */
  #asksAll = false

  constructor(stream: string, following: LogFollow, events: LinkEvents, resend: (message: LinkMessage) => void) {
    this.#stream = stream
    this.#following = following
    this.#events = events
    this.#resend = resend
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
      this.#events.refused(earlier, refusal(NOT_STORED))
    }
  }

  /** @returns an error text if another log than the followed one has answered: the stream is gone, or has lost its end */
  answered(sequence: number, text: string): string | undefined {
    if (!this.#asked.delete(sequence)) return undefined
    const { stream, seq, duplicate, error } = JSON.parse(text) as PublishAnswer
    if (error !== undefined) {
      this.#sent.delete(sequence)
      this.#events.refused(sequence, refusal(error.description))
      // The log drops the second copy of what was stored.
      this.#asksAll = true
      for (const earlier of [...this.#sent.values()])
        if (earlier.sequence < sequence && !this.#asked.has(earlier.sequence)) this.#resend(earlier)
    } else if (stream !== this.#stream) return `the stream ${stream} stores messages that belong to ${this.#stream}`
    else if (duplicate === true) {
      this.#sent.delete(sequence)
      this.#duplicates.push({ sequence, offset: seq })
      this.#confirmDuplicates().catch((cause: Error) => this.#following.lose(reasonOf(cause)))
    } else if (!this.#sent.has(sequence)) this.#refuseBefore(sequence, true)
    else if (seq <= this.#following.lastSequence)
      return `JetStream stores at ${seq} what is published after ${this.#following.lastSequence}: it serves two logs`
    else this.#asked.set(sequence, 'stored')
    return undefined
  }

  /** A stream that is made again knows ids too, and this node may still follow the one before. */
  async #confirmDuplicates(): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    while (this.#duplicates.length > 0) {
      const told = this.#duplicates.splice(0)
      const { epoch, lastSequence } = this.#following
      if (told.some(({ offset }) => offset <= lastSequence) && (await this.#following.check()) === undefined) return
      for (const { sequence, offset } of told) this.#events.confirmed(sequence, false, { epoch, offset })
    }
    this.#isChecking = false
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

/** Without a cause: clients see JetStream's words, which name neither hosts nor users. */
function refusal(words: string): WebMQError {
  return new WebMQError('E_BROKER_UNAVAILABLE', { detail: `it refused the message: ${words}` })
}
