import type { JetStreamManager } from '@nats-io/jetstream'
import type { Msg, NatsConnection, PublishOptions } from '@nats-io/transport-node'
import {
  decodeEnvelope,
  type LinkContext,
  type LinkEvents,
  type LinkLog,
  type LinkMessage,
  type Liveness,
  type LogFollower,
  logged,
} from 'webmq-server/brokers'
import type { LogPlace, Position } from 'webmq-server/ports'
import type { NatsCore, NatsJetStream } from './connect.js'
import { GenerationGuard, type LastSeen } from './generation-guard.js'
import { type FollowOwner, LogFollow } from './log-follow.js'
import { LogStream, type LogStreamOptions } from './log-stream.js'
import { OrderedConsumer } from './ordered-consumer.js'
import { PublishAcks } from './publish-acks.js'
import { type StreamMessage, storedAtMs } from './stream-message.js'
import type { NatsSubjects } from './subjects.js'

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

/** What a {@link NatsLog} uses of its link. */
export interface LogLink {
  readonly connection: NatsConnection
  readonly context: LinkContext
  readonly events: LinkEvents
  readonly subjects: NatsSubjects
  readonly liveness: Liveness
  readonly sender: { send(message: LinkMessage, isLastOfTurn: boolean): void }
  readonly subscriptions: { isLive(key: string): boolean }
  lose(cause: Error): void
}

/** Status of the answer when nobody receives a request. */
const NO_RESPONDERS = 503
const API_PREFIX = '$JS.API.'

/** The log over one link: a stream of JetStream. */
export class NatsLog implements LinkLog, FollowOwner {
  readonly #link: LogLink
  readonly #context: NatsLogContext
  readonly #stream: LogStream
  readonly #guard: GenerationGuard
  readonly consumer: OrderedConsumer
  readonly #following: LogFollow
  readonly acks: PublishAcks
  /** The sequence of the acknowledged message follows it. */
  readonly #ackPrefix: string
  #isOpening = false

  constructor(link: LogLink, context: NatsLogContext) {
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
