import type { Msg, NatsConnection, Status } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import type { Position } from '../../ports/broker.js'
import { deferred } from '../../ports/deferred.js'
import { decodeEnvelope, encodeEnvelope, PUBLISHER_BYTES } from '../remote/envelope.js'
import type { Link, LinkContext, LinkEvents, LinkMessage, LogFollower, LogPosition } from '../remote/link.js'
import { Liveness } from '../remote/liveness.js'
import { complaintOf } from './complaint.js'
import type { OpenedConnection } from './connect.js'
import { NatsLog, type NatsLogContext } from './log.js'
import { NatsRounds, type Round, type RoundWaiter } from './rounds.js'
import { NatsSubjects } from './subjects.js'
import { type NatsSubscription, NatsSubscriptions } from './subscriptions.js'

/** Most bytes of an envelope without a message id and attributes. */
export const ENVELOPE_BYTES = 20
/** `NATS/1.0`, the header with the message id, and line ends. */
const ID_HEADER_BYTES = 49
/**
 * Most unanswered pings, except for {@link MAX_UNCONFIRMED_BYTES}. The next ping confirms everything sent until then.
 */
const MAX_PINGS = 64
/** After this many bytes a ping follows in any case: on a slow connection its answer is the sign of life. */
const MAX_UNCONFIRMED_BYTES = 262_144

/**
 * One connection to a NATS server with the node's subscriptions.
 *
 * Core NATS does not confirm messages. It answers a ping once it has passed everything before it to all subscribers. So
 * a ping after the messages and subscriptions of a turn confirms them. Logged messages go through the stream, which
 * confirms and delivers them.
 */
export class NatsLink implements Link {
  readonly #connection: NatsConnection
  readonly #destroy: () => void
  readonly #events: LinkEvents
  readonly #node: string
  readonly #nodeSubject: string
  readonly #subjects: NatsSubjects
  readonly #subscriptions: NatsSubscriptions
  readonly #rounds = new NatsRounds()
  readonly #log: NatsLog | undefined
  readonly #liveness: Liveness
  /** Messages of this turn. */
  #queue: LinkMessage[] = []
  #isFlushScheduled = false
  /** Bytes sent since the last ping. */
  #unconfirmedBytes = 0
  #probe: RoundWaiter | undefined
  /** No more events are reported. */
  #isOver = false

  /** @param log Absent without history. */
  constructor(
    { connection, destroy }: OpenedConnection,
    context: LinkContext,
    events: LinkEvents,
    log?: NatsLogContext,
  ) {
    this.#connection = connection
    this.#destroy = destroy
    this.#events = events
    this.#node = context.node
    this.#subjects = new NatsSubjects(context.namespace)
    this.#nodeSubject = this.#subjects.ofNode(context.node)
    this.#log =
      log === undefined
        ? undefined
        : new NatsLog(log, context, this.#subjects, events, {
            lose: (cause) => this.lose(cause),
            alive: () => this.#liveness.alive(),
            isSubscribed: (key) => this.#subscriptions.isLive(key),
          })
    this.#subscriptions = new NatsSubscriptions(this.#subjects, {
      subscribe: (subject, subscription) => {
        this.#sendQueue()
        const take = (message: Msg) => this.#deliver(subscription, message)
        return connection.subscribe(subject, { callback: (error, message) => this.#guarded(error, message, take) })
      },
      wait: (waiter) => this.#await(waiter),
    })
    this.#liveness = new Liveness({
      intervalMs: context.heartbeatMs,
      probe: () => {
        if (this.#rounds.pingCount === 0) this.#ping()
      },
      silent: (detail) => this.lose(new Error(`the server does not answer: ${detail}`)),
    })
    void this.#watch()
    void connection.closed().then((cause) => {
      this.lose(cause instanceof Error ? cause : new Error('the server has closed the connection'))
    })
  }

  /**
   * Publishes and subscribes to the node's own subject, and opens the log. Resolves when the server allows it.
   * @throws {WebMQError} `E_BROKER_REFUSED` when the server does not allow it.
   */
  async probe(): Promise<void> {
    const subscription = this.#connection.subscribe(this.#nodeSubject, { callback: () => undefined })
    this.#connection.publish(this.#nodeSubject)
    const answer = deferred()
    this.#probe = { done: () => answer.resolve(), failed: answer.reject }
    this.#await(this.#probe)
    await answer.promise
    this.#probe = undefined
    subscription.unsubscribe()
    await this.#log?.open()
  }

  /** Messages of patterns that the log covers come from the log only. */
  async bind(pattern: string): Promise<void> {
    if (this.#log?.covers(pattern) !== true) await this.#subscriptions.bind(pattern)
  }

  async unbind(pattern: string): Promise<void> {
    if (this.#log?.covers(pattern) !== true) await this.#subscriptions.unbind(pattern)
  }

  async follow(after: LogPosition | undefined, follower: LogFollower): Promise<void> {
    await this.#log?.follow(after, follower)
  }

  async logEnd(): Promise<Position | undefined> {
    return await this.#log?.logEnd()
  }

  publish(message: LinkMessage): void {
    if (this.#isOver) return
    this.#queue.push(message)
    this.#unconfirmedBytes += message.payload.length
    if (this.#unconfirmedBytes < MAX_UNCONFIRMED_BYTES) this.#schedule()
    else this.#flush()
  }

  async close(): Promise<void> {
    if (!this.#isOver) {
      this.#sendQueue()
      this.#log?.end()
      this.#over(new Error('the link is closed'))
      // The server has then read everything. An error means that the connection is lost: nothing is left to read.
      await this.#connection.flush().catch(() => undefined)
    }
    await this.#connection.close()
  }

  destroy(): void {
    if (!this.#isOver) this.#over(new Error('the link is closed'))
    this.#destroy()
  }

  lose(cause: Error): void {
    if (this.#isOver) return
    // Until the probe is answered, only its caller has the link, and it gets the error.
    const isTold = this.#probe === undefined
    this.#over(cause)
    void this.#connection.close()
    if (isTold) this.#events.lost(cause)
  }

  #over(cause: Error): void {
    this.#isOver = true
    this.#queue = []
    this.#liveness.stop()
    for (const waiter of this.#rounds.takeAllWaiters()) waiter.failed(cause)
    this.#log?.fail(cause)
  }

  async #watch(): Promise<void> {
    try {
      for await (const status of this.#connection.status()) this.#note(status)
    } catch (cause) {
      this.lose(cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #note(status: Status): void {
    if (this.#isOver) return
    if (status.type === 'ldm') this.lose(new Error('the server is about to stop (lame duck mode)'))
    else if (status.type === 'error' && !this.#isAnswered(status.error.message)) this.lose(status.error)
  }

  /** An error thrown here would end the library's reader. `#watch` handles the error of a refused subscription. */
  #guarded(error: Error | null, message: Msg, take: (message: Msg) => void): void {
    if (this.#isOver || error !== null) return
    try {
      take(message)
    } catch (cause) {
      this.lose(cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #deliver(subscription: NatsSubscription, message: Msg): void {
    const key = subscription.onlyKey ?? this.#keyOf(message.subject)
    // A broader pattern matches it too, but it comes from the log.
    if (key === undefined || this.#log?.logs(key) === true) return
    const delivery = decodeEnvelope(key, message.data)
    if (delivery === undefined) this.#events.malformed(`an envelope that is cut or of another version, for ${key}`, key)
    else if (delivery.source !== undefined || this.#subscriptions.isFirstCopy(subscription, key))
      this.#events.deliver(delivery)
  }

  #keyOf(subject: string): string | undefined {
    const key = this.#subjects.keyOf(subject)
    if (key === undefined && !this.#subjects.isOwn(subject))
      this.#events.malformed(`the subject ${subject} is that of no key`)
    return key
  }

  /** Whether the error belongs to a request, whose caller gets it. */
  #isAnswered(text: string): boolean {
    const complaint = complaintOf(text)
    if (complaint === undefined) return false
    if (complaint.kind === 'too-many-subscriptions')
      return this.#fail(
        this.#rounds.takeOldestWaiters(),
        `${text}; max_subscriptions of the NATS server bounds the patterns of a node`,
      )
    const { kind, subject } = complaint
    if (subject === this.#nodeSubject) {
      const detail = `${text}; its user must be allowed to publish and to subscribe to ${this.#subjects.prefix}>`
      return this.#fail(this.#probe === undefined ? [] : [this.#probe], detail)
    }
    if (this.#log?.isAnswered(kind, subject, text) === true) return true
    if (kind === 'publish') return this.#refuse(subject, text)
    // If the server ends a live subscription, messages are missing from then on: the link is lost.
    const subscription = this.#subscriptions.awaited(subject)
    return this.#fail(subscription === undefined ? [] : [subscription.waiter], text)
  }

  #refuse(subject: string, text: string): boolean {
    const message = this.#rounds.take(({ key }) => this.#subjects.ofKey(key) === subject)
    if (message !== undefined) this.#events.refused(message.sequence, new Error(text))
    return message !== undefined
  }

  #fail(waiters: readonly RoundWaiter[], detail: string): boolean {
    for (const waiter of waiters) waiter.failed(new WebMQError('E_BROKER_REFUSED', { detail }))
    return waiters.length > 0
  }

  #await(waiter: RoundWaiter): void {
    if (this.#isOver) waiter.failed(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the link is lost' }))
    else {
      this.#rounds.wait(waiter)
      this.#schedule()
    }
  }

  /** While an answer is pending, it waits for the rest of the turn. */
  #schedule(): void {
    if (this.#isFlushScheduled || this.#isOver) return
    this.#isFlushScheduled = true
    const flush = () => {
      this.#isFlushScheduled = false
      this.#flush()
    }
    if (this.#rounds.pingCount === 0 && this.#log?.isWaiting !== true) queueMicrotask(flush)
    else setImmediate(flush)
  }

  /** The library writes everything of one microtask together; its `flush` adds a ping. */
  #flush(): void {
    if (this.#isOver) return
    this.#sendQueue()
    const isPingDue = this.#rounds.pingCount < MAX_PINGS || this.#unconfirmedBytes >= MAX_UNCONFIRMED_BYTES
    if (this.#rounds.isOpenEmpty) this.#unconfirmedBytes = 0
    else if (isPingDue) this.#ping()
  }

  #sendQueue(): void {
    const queue = this.#queue
    this.#queue = []
    for (const message of queue) this.#send(message)
  }

  #send(message: LinkMessage): void {
    try {
      const subject = this.#subjects.ofKey(message.key)
      const bytes = encodeEnvelope(this.#node, message)
      this.#assertFits(message, bytes.length)
      if (message.isLogged) this.#log?.publish(subject, bytes, message)
      else {
        this.#connection.publish(subject, bytes)
        this.#rounds.sent(message)
      }
    } catch (cause) {
      // If the connection is closed, the next link sends the message.
      if (!this.#connection.isClosed())
        this.#events.refused(message.sequence, cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #assertFits({ messageId, isLogged, publisher }: LinkMessage, envelopeBytes: number): void {
    const maxBytes = this.#connection.info?.max_payload
    if (maxBytes === undefined) return
    // Whether a message fits does not depend on who publishes it.
    const publisherBytes = publisher === undefined ? PUBLISHER_BYTES : 0
    const byteCount = envelopeBytes + publisherBytes + (messageId !== undefined && isLogged ? ID_HEADER_BYTES : 0)
    if (byteCount <= maxBytes) return
    const detail = `${byteCount} bytes with its envelope, and the NATS server takes ${maxBytes}`
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail })
  }

  #ping(): void {
    this.#unconfirmedBytes = 0
    this.#rounds.close()
    this.#connection.flush().then(
      () => this.#answered(),
      // `closed` reports a lost connection.
      () => undefined,
    )
  }

  /**
   * The server reports errors before it answers the next ping, but the library passes them on some microtasks later.
   * They are all known in the next turn.
   */
  #answered(): void {
    this.#liveness.alive()
    this.#rounds.answered()
    setImmediate(() => this.#settle())
  }

  #settle(): void {
    if (this.#isOver) return
    const round = this.#rounds.settled()
    if (round === undefined) return
    for (const waiter of round.waiters) waiter.done()
    if (round.lastSequence > 0) this.#confirm(round)
    if (!this.#rounds.isOpenEmpty) this.#schedule()
  }

  /** With a log, the ping does not confirm logged messages in between, so the others are confirmed one by one. */
  #confirm({ lastSequence, messages }: Readonly<Round>): void {
    if (this.#log === undefined) this.#events.confirmed(lastSequence, true)
    else for (const message of messages) if (message !== undefined) this.#events.confirmed(message.sequence, false)
  }
}
