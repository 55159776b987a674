import type { JetStreamManager } from '@nats-io/jetstream'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import type { Position } from '../../ports/broker.js'
import type { LinkContext, LinkEvents, LinkMessage, LogFollower, LogPosition } from '../remote/link.js'
import type { LastSeen } from './generation-guard.js'
import { GenerationGuard } from './generation-guard.js'
import { explained } from './jetstream-errors.js'
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
  readonly #wire: NatsLogWire
  readonly #events: LinkEvents
  readonly #subjects: NatsSubjects
  readonly #stream: LogStream
  readonly #consumer: OrderedConsumer
  readonly #follow: LogFollow
  readonly #acks: PublishAcks
  /** The sequence of the acknowledged message follows it. */
  readonly #ackPrefix: string
  #isOpening = false

  constructor(log: NatsLogContext, link: LinkContext, subjects: NatsSubjects, events: LinkEvents, wire: NatsLogWire) {
    const { jetStream, connection, manager, lastSeen, inbox } = log
    this.#context = log
    this.#wire = wire
    this.#events = events
    this.#subjects = subjects
    this.#ackPrefix = `${inbox}.p.`
    const requestContext = () => ({ jetStream, info: connection.info, prefix: subjects.prefix })
    const stream = new LogStream(manager, requestContext, link.namespace, subjects, log.stream)
    this.#stream = stream
    this.#acks = new PublishAcks(stream.name, events)
    this.#consumer = new OrderedConsumer({
      jetStream,
      connection,
      manager,
      stream: stream.name,
      deliverSubject: `${inbox}.m`,
      heartbeatMs: link.heartbeatMs,
      take: (message) => this.#follow.take(message),
      idle: () => this.#follow.idle(),
      lost: (cause) => wire.lose(cause),
      explained: (cause) => explained(cause, requestContext()),
    })
    this.#follow = new LogFollow({
      stream,
      consumer: this.#consumer,
      guard: new GenerationGuard({
        stream,
        lastSeen,
        announce: (generation) => connection.publish(subjects.ofLog, String(generation)),
      }),
      subjects,
      lastSeen,
      events,
      logs: (key) => this.logs(key),
      isSubscribed: (key) => wire.isSubscribed(key),
      lose: (cause) => wire.lose(cause),
    })
  }

  /** Creates or adjusts the stream. */
  async open(): Promise<void> {
    this.#isOpening = true
    this.#context.connection.subscribe(`${this.#ackPrefix}*`, {
      callback: (error, message) => {
        if (error === null) this.#answered(message)
      },
    })
    await this.#stream.open()
    this.#isOpening = false
  }

  follow(after: LogPosition | undefined, follower: LogFollower): Promise<void> {
    return this.#follow.follow(after, follower)
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
    this.#consumer.delete()
  }

  /** The link is over. */
  fail(cause: Error): void {
    this.#consumer.stop()
    this.#follow.fail(cause)
  }

  /** An error thrown here would end the library's reader. */
  #answered(message: Msg): void {
    this.#wire.alive()
    try {
      const sequence = Number(message.subject.slice(this.#ackPrefix.length))
      const reason =
        message.headers?.code === NO_RESPONDERS
          ? 'nobody stores logged messages: the stream is gone, or has no leader'
          : this.#acks.answered(sequence, message.json<PublishAnswer>(), this.#follow.epoch)
      if (reason !== undefined) this.#wire.lose(new Error(reason))
    } catch (cause) {
      this.#wire.lose(cause instanceof Error ? cause : new Error(String(cause)))
    }
  }
}
