import type { JetStreamManager } from '@nats-io/jetstream'
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node'
import type { Position } from '../../ports/broker.js'
import type { LinkContext, LinkEvents, LinkMessage, LogFollower, LogPosition } from '../remote/link.js'
import { GenerationGuard } from './generation-guard.js'
import { explained, type RequestContext } from './jetstream-errors.js'
import type { LastSeen } from './last-seen.js'
import type { NatsCore, NatsJetStream } from './library.js'
import { LogFollow } from './log-follow.js'
import { LogStream, type LogStreamOptions } from './log-stream.js'
import { OrderedConsumer } from './ordered-consumer.js'
import { PublishAcks, type PublishAnswer } from './publish-acks.js'
import type { NatsSubjects } from './subjects.js'

/** What a link with a log works with. */
export interface NatsLogContext {
  readonly core: NatsCore
  readonly jetStream: NatsJetStream
  readonly connection: NatsConnection
  readonly manager: JetStreamManager
  readonly stream: LogStreamOptions
  /** The node's, across all its links. */
  readonly lastSeen: LastSeen
  /** Prefix of the subjects for answers, and of no other subject. */
  readonly inbox: string
}

/** What a log needs of its link. */
export interface NatsLogWire {
  /** Gives up the link. */
  lose(cause: Error): void
  /** The server has answered. */
  alive(): void
  /** Whether a live subscription brings messages with this key. */
  isSubscribed(key: string): boolean
}

/** Status of the answer when nobody receives a request. */
const NO_RESPONDERS = 503
const API_PREFIX = '$JS.API.'

/** The log over one link: a stream of JetStream. */
export class NatsLog {
  readonly #context: NatsLogContext
  readonly #link: LinkContext
  readonly #wire: NatsLogWire
  readonly #events: LinkEvents
  readonly #subjects: NatsSubjects
  readonly #requestContext: () => RequestContext
  readonly #stream: LogStream
  /** Present while the log is followed. */
  #consumer: OrderedConsumer | undefined
  #follow: LogFollow | undefined
  #followCount = 0
  /** Of the stream when it was opened. */
  #epoch = ''
  #generation = Number.POSITIVE_INFINITY
  /** Of all nodes, about the log. */
  #notes: Subscription | undefined
  readonly #acks: PublishAcks
  /** The sequence of the acknowledged message follows it. */
  readonly #ackPrefix: string
  #isOpening = false

  constructor(log: NatsLogContext, link: LinkContext, subjects: NatsSubjects, events: LinkEvents, wire: NatsLogWire) {
    const { jetStream, connection, manager, inbox } = log
    this.#context = log
    this.#link = link
    this.#wire = wire
    this.#events = events
    this.#subjects = subjects
    this.#ackPrefix = `${inbox}.p.`
    this.#requestContext = () => ({ jetStream, info: connection.info, prefix: subjects.prefix })
    this.#stream = new LogStream(manager, this.#requestContext, link.namespace, subjects, log.stream)
    this.#acks = new PublishAcks(this.#stream.name, events)
  }

  /** Creates or adjusts the stream. */
  async open(): Promise<void> {
    this.#isOpening = true
    this.#context.connection.subscribe(`${this.#ackPrefix}*`, {
      callback: (error, message) => {
        if (error === null) this.#answered(message)
      },
    })
    this.#epoch = (await this.#stream.open()).epoch
    this.#isOpening = false
  }

  /** As {@link Link.openLog}. */
  async openForPublishing(): Promise<void> {
    const { connection } = this.#context
    this.#acks.unfollowed()
    // A node that follows the log finds that its end is lost, and tells all: positions then have another epoch.
    this.#notes ??= connection.subscribe(this.#subjects.ofLog, {
      callback: (error, note) => {
        const isLater = error === null && Number(note.string()) > this.#generation
        if (isLater) this.#wire.lose(new Error('another node has found that the log has lost its end'))
      },
    })
    const { epoch, generation } = await this.#stream.state()
    this.#epoch = epoch
    this.#generation = generation
  }

  /** As {@link Link.follow}. */
  async follow(after: LogPosition | undefined, follower: LogFollower): Promise<void> {
    const { lastSeen, connection } = this.#context
    const subjects = this.#subjects
    const stream = this.#stream
    const consumer = this.#createConsumer()
    const follow = new LogFollow({
      stream,
      consumer,
      guard: new GenerationGuard({
        stream,
        lastSeen,
        announce: (generation) => connection.publish(subjects.ofLog, String(generation)),
      }),
      subjects,
      lastSeen,
      events: this.#events,
      logs: (key) => this.logs(key),
      isSubscribed: (key) => this.#wire.isSubscribed(key),
      lose: (cause) => this.#wire.lose(cause),
    })
    this.#consumer = consumer
    this.#follow = follow
    await follow.follow(after, follower)
    if (this.#follow === follow) this.#acks.followed(follow.lastSequence)
  }

  /** As {@link Link.unfollow}. */
  unfollow(): void {
    this.#epoch = this.#follow?.epoch || this.#epoch
    this.#consumer?.end()
    this.#follow?.stop()
    this.#consumer = undefined
    this.#follow = undefined
    this.openForPublishing().catch((cause: Error) => this.#wire.lose(cause))
  }

  #createConsumer(): OrderedConsumer {
    const { jetStream, connection, manager, inbox } = this.#context
    return new OrderedConsumer({
      jetStream,
      connection,
      manager,
      stream: this.#stream.name,
      // Late messages of an earlier consumer go nowhere.
      deliverSubject: `${inbox}.m${++this.#followCount}`,
      heartbeatMs: this.#link.heartbeatMs,
      take: (message) => {
        this.#follow?.take(message)
        if (this.#follow !== undefined) this.#acks.followed(this.#follow.lastSequence)
      },
      idle: () => this.#follow?.idle(),
      lost: (cause) => this.#wire.lose(cause),
      explained: (cause) => explained(cause, this.#requestContext()),
    })
  }

  async logEnd(): Promise<Position> {
    const { epoch, lastSequence } = await this.#stream.state()
    return { epoch, offset: lastSequence }
  }

  logs(key: string): boolean {
    return this.#context.stream.history.ruleOf(key) !== undefined
  }

  covers(pattern: string): boolean {
    return this.#context.stream.history.covers(pattern)
  }

  /** Whether messages wait for an acknowledgement. */
  get isWaiting(): boolean {
    return this.#acks.isWaiting
  }

  /**
   * Sends a message; the stream answers. The library's JetStream `publish` makes one request per message, which takes
   * four times as long.
   */
  publish(subject: string, bytes: Uint8Array, message: LinkMessage): void {
    const { core, jetStream, connection } = this.#context
    const { sequence, messageId } = message
    const reply = this.#ackPrefix + sequence
    if (messageId === undefined) connection.publish(subject, bytes, { reply })
    else {
      const headers = core.headers()
      headers.set(jetStream.PubHeaders.MsgIdHdr, messageId)
      connection.publish(subject, bytes, { reply, headers })
    }
    this.#acks.sent(message)
  }

  /** Whether the error belongs to a request, whose caller gets it. */
  isAnswered(kind: 'publish' | 'subscription', subject: string, text: string): boolean {
    if (kind === 'publish') {
      const sequence = this.#acks.take((key) => this.#subjects.ofKey(key) === subject)
      if (sequence !== undefined) {
        this.#events.refused(sequence, new Error(text))
        return true
      }
      // The request fails by itself.
      return subject.startsWith(API_PREFIX)
    }
    // The requests that wait for answers there fail by themselves.
    return this.#isOpening && subject.startsWith(this.#context.inbox)
  }

  /** The link is about to be closed. */
  end(): void {
    this.#consumer?.delete()
  }

  /** The link is over. */
  fail(cause: Error): void {
    this.#consumer?.stop()
    this.#follow?.fail(cause)
  }

  /** An error thrown here would end the library's reader. */
  #answered(message: Msg): void {
    this.#wire.alive()
    try {
      const sequence = Number(message.subject.slice(this.#ackPrefix.length))
      const reason =
        message.headers?.code === NO_RESPONDERS
          ? 'nobody stores logged messages: the stream is gone, or has no leader'
          : this.#acks.answered(sequence, message.json<PublishAnswer>(), this.#follow?.epoch || this.#epoch)
      if (reason !== undefined) this.#wire.lose(new Error(reason))
    } catch (cause) {
      this.#wire.lose(cause instanceof Error ? cause : new Error(String(cause)))
    }
  }
}
