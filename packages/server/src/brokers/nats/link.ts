import type { Msg, NatsConnection, Status } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import { decodeEnvelope, encodeEnvelope } from '../remote/envelope.js'
import type { Link, LinkContext, LinkEvents, LinkMessage, LogFollower, LogPlace } from '../remote/link.js'
import { Liveness } from '../remote/liveness.js'
import { complaintOf } from './complaint.js'
import { NatsLog, type NatsLogContext } from './log.js'
import { headerBytesOf } from './message-id.js'
import { NatsRounds, type Round, type RoundWaiter } from './rounds.js'
import { NatsSubjects } from './subjects.js'
import { type NatsSubscription, NatsSubscriptions } from './subscriptions.js'

/** The envelope has at most this many bytes before the message id. */
export const ENVELOPE_BYTES = 20
/** Pings under way at most, but for {@link MAX_UNCONFIRMED_BYTES}; the next one confirms what is sent meanwhile. */
const MAX_PINGS = 64
/** A ping follows after so many bytes, however many are under way: on a slow line their answers are the signs of life. */
const MAX_UNCONFIRMED_BYTES = 262_144
/** For the server to read what is left. */
const CLOSE_TIMEOUT_MS = 2_000

/**
 * One connection to a NATS server with the node's subscriptions.
 *
 * Core NATS says nothing to a message that it takes. It answers a ping once it has handed everything before it to all subscribers. So a ping
 * behind the messages of a turn confirms them, and the subscriptions of that turn. The stream confirms logged messages, and they come from there.
 */
export class NatsLink implements Link {
  readonly #connection: NatsConnection
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
  /** Since the last ping. */
  #unconfirmedBytes = 0
  #probe: RoundWaiter | undefined
  /** Nothing more is told. */
  #isOver = false

  /** @param log Absent where nothing is logged. */
  constructor(connection: NatsConnection, context: LinkContext, events: LinkEvents, log?: NatsLogContext) {
    this.#connection = connection
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
   * Publishes and subscribes to a subject of the node's own, and opens the log; resolves when the server allows it.
   * @throws {WebMQError} `E_BROKER_REFUSED` when it does not.
   */
  async probe(): Promise<void> {
    const subscription = this.#connection.subscribe(this.#nodeSubject, { callback: () => undefined })
    this.#connection.publish(this.#nodeSubject)
    await new Promise<void>((done, failed) => {
      this.#probe = { done, failed }
      this.#await(this.#probe)
    })
    this.#probe = undefined
    subscription.unsubscribe()
    await this.#log?.open()
  }

  /** Messages that the rules cover come from the log alone. */
  async bind(pattern: string): Promise<void> {
    if (this.#log?.covers(pattern) !== true) await this.#subscriptions.bind(pattern)
  }

  async unbind(pattern: string): Promise<void> {
    if (this.#log?.covers(pattern) !== true) await this.#subscriptions.unbind(pattern)
  }

  async follow(after: LogPlace | undefined, follower: LogFollower): Promise<void> {
    await this.#log?.follow(after, follower)
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
      await this.#drain()
    }
    await this.#connection.close()
  }

  lose(cause: Error): void {
    if (this.#isOver) return
    // Before the probe is answered nobody has the link; the caller of the probe is told.
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

  /** The server answers once it has read everything. */
  async #drain(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_TIMEOUT_MS)
    })
    // A connection that is lost has nothing left.
    await Promise.race([this.#connection.flush().catch(() => undefined), limit])
    clearTimeout(timer)
  }

  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) this.#note(status)
  }

  #note(status: Status): void {
    if (this.#isOver) return
    if (status.type === 'ldm') this.lose(new Error('the server is about to stop (lame duck mode)'))
    else if (status.type === 'error' && !this.#isAnswered(status.error.message)) this.lose(status.error)
  }

  /** An error thrown here would end the library's reader. A refused subscription is an error, and a status that is told later. */
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
    // A broader pattern brings it, too; it comes from the log.
    if (key === undefined || this.#log?.logs(key) === true) return
    const delivery = decodeEnvelope(key, message.data)
    if (delivery === undefined) this.#events.malformed(`an envelope that is cut or of another version, for ${key}`)
    else if (delivery.source !== undefined || this.#subscriptions.isFirstCopy(subscription, key))
      this.#events.deliver(delivery)
  }

  #keyOf(subject: string): string | undefined {
    const key = this.#subjects.keyOf(subject)
    if (key === undefined && !this.#subjects.isOwn(subject))
      this.#events.malformed(`the subject ${subject} is that of no key`)
    return key
  }

  /** Whether the caller whose request the server refused could be told. */
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
    // A live subscription that the server ends is as good as a lost link: it brings nothing from then on.
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

  /** With an answer under way there is no haste: the rest of the turn goes along. */
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

  /** The library sends what it is given until the end of a microtask at once; its `flush` ends that with a ping. */
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
      this.#assertFits(message)
      const subject = this.#subjects.ofKey(message.key)
      const bytes = encodeEnvelope(this.#node, message)
      if (message.isLogged) this.#log?.publish(subject, bytes, message)
      else {
        this.#connection.publish(subject, bytes)
        this.#rounds.sent(message)
      }
    } catch (cause) {
      // What a closed connection did not take is sent again on the next link.
      if (!this.#connection.isClosed())
        this.#events.refused(message.sequence, cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #assertFits({ payload, messageId, isLogged }: LinkMessage): void {
    const maxBytes = this.#connection.info?.max_payload
    if (maxBytes === undefined) return
    let byteCount = payload.length + ENVELOPE_BYTES
    if (messageId !== undefined)
      byteCount += 1 + Buffer.byteLength(messageId) + (isLogged ? headerBytesOf(messageId) : 0)
    if (byteCount <= maxBytes) return
    const detail = `${byteCount} bytes with its envelope, and the NATS server takes ${maxBytes}`
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail })
  }

  #ping(): void {
    this.#unconfirmedBytes = 0
    this.#rounds.close()
    this.#connection.flush().then(
      () => this.#answered(),
      // `closed` tells of a lost connection.
      () => undefined,
    )
  }

  /**
   * The server complains before it answers the ping behind, but the library tells of complaints some microtasks later: all
   * of them are known when those are over.
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

  /** Where there is a log, its messages stand between others, and are not meant. */
  #confirm({ lastSequence, messages }: Readonly<Round>): void {
    if (this.#log === undefined) this.#events.confirmed(lastSequence, true)
    else for (const message of messages) if (message !== undefined) this.#events.confirmed(message.sequence, false)
  }
}
