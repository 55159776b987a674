import { WebMQError } from 'webmq-client/protocol'
import { decodeEnvelope } from '../remote/envelope.js'
import type { Link, LinkContext, LinkEvents, LinkMessage, LogFollower, LogPlace } from '../remote/link.js'
import { complaintOf } from './complaint.js'
import type { NatsConnection, NatsConnectionEvents, NatsServerInfo } from './connection.js'
import { LAST_LOG_SUBSCRIPTION, NatsLog, type NatsLogContext, type NatsLogWire } from './log.js'
import { NatsOutbox, payloadBytesOf } from './outbox.js'
import type { NatsMessageBounds } from './parser.js'
import { NatsRounds, type Round, type RoundWaiter } from './rounds.js'
import { NatsSubjects } from './subjects.js'
import { type NatsSubscription, NatsSubscriptions } from './subscriptions.js'

/** Pings under way at most; what is sent meanwhile is confirmed by the next one. */
const MAX_PINGS = 64
/** Messages of a turn that are sent, with a ping of their own, before it is over. */
const MAX_QUEUED_BYTES = 262_144
const CHECKS_PER_HEARTBEAT = 2
/** Checks in a row without a sign of life: then the silence has lasted between one and a half and two heartbeats. */
const MAX_SILENT_CHECKS = 3
/** For the server to read what is left and to end its side. */
const CLOSE_TIMEOUT_MS = 2_000
const PING = 'PING\r\n'
const PROBE_ID = 0

/**
 * One connection to a NATS server with the node's subscriptions.
 *
 * Core NATS says nothing to a message that it has taken. It answers a ping once it has handed everything before it to all who are
 * subscribed: so a ping behind the messages of a turn confirms them, and the subscriptions of that turn. What is logged is confirmed by its stream, and comes from there.
 */
export class NatsLink implements Link, NatsConnectionEvents, NatsLogWire {
  readonly #connection: NatsConnection
  readonly #events: LinkEvents
  readonly #nodeSubject: string
  readonly #subjects: NatsSubjects
  readonly #outbox: NatsOutbox
  readonly #subscriptions: NatsSubscriptions
  readonly #rounds = new NatsRounds()
  readonly #log: NatsLog | undefined
  readonly #ended: Promise<void>
  readonly #heartbeat: NodeJS.Timeout
  #tellEnded: () => void = () => undefined
  /** Messages and lines of this turn. */
  #queue: (LinkMessage | string)[] = []
  #isFlushScheduled = false
  #queuedBytes = 0
  /** Since the last check a ping was answered, or the connection has taken a part of what waits for it. */
  #isAlive = true
  #silentCheckCount = 0
  /** At the last check. */
  #progress = { waitingBytes: 0, leftBytes: 0 }
  #probe: RoundWaiter | undefined
  /** Nothing more is told. */
  #isOver = false

  /** @param log Absent where nothing is logged. */
  constructor(connection: NatsConnection, context: LinkContext, events: LinkEvents, log?: NatsLogContext) {
    this.#connection = connection
    this.#events = events
    this.#subjects = new NatsSubjects(context.namespace)
    this.#nodeSubject = this.#subjects.ofNode(context.node)
    this.#log = log === undefined ? undefined : new NatsLog(log, context, this.#subjects, this, events)
    this.#outbox = new NatsOutbox(context.node, this.#subjects, this.#log?.ackPrefix)
    this.#subscriptions = new NatsSubscriptions(this.#subjects, LAST_LOG_SUBSCRIPTION, (line, waiter) => {
      this.#queue.push(line)
      this.#await(waiter)
    })
    this.#ended = new Promise((resolve) => {
      this.#tellEnded = resolve
    })
    this.#heartbeat = setInterval(() => this.#check(), context.heartbeatMs / CHECKS_PER_HEARTBEAT)
    connection.handOver(this)
  }

  /**
   * Publishes and subscribes to a subject of the node's own, and opens the log; resolves when the server allows it.
   * @throws {WebMQError} `E_BROKER_REFUSED` when it does not.
   */
  async probe(): Promise<void> {
    const subject = this.#nodeSubject
    this.#queue.push(`SUB ${subject} ${PROBE_ID}\r\n`, `PUB ${subject} 0\r\n\r\n`, `UNSUB ${PROBE_ID}\r\n`)
    await new Promise<void>((done, failed) => {
      this.#probe = { done, failed }
      this.#await(this.#probe)
    })
    this.#probe = undefined
    await this.#log?.open()
  }

  /** What the rules cover comes from the log alone. */
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
    const { max_payload: maxBytes } = this.#connection.info
    const byteCount = payloadBytesOf(message)
    if (byteCount > maxBytes) {
      const detail = `${byteCount} bytes with its envelope, and the NATS server takes ${maxBytes}`
      this.#events.refused(message.sequence, new WebMQError('E_PAYLOAD_TOO_LARGE', { detail }))
      return
    }
    if (message.isLogged) this.#log?.sent(message)
    else this.#rounds.sent(message)
    this.#queue.push(message)
    this.#queuedBytes += byteCount
    if (this.#queuedBytes < MAX_QUEUED_BYTES) this.#schedule()
    else this.#flush()
  }

  async close(): Promise<void> {
    if (!this.#isOver) {
      this.#log?.end()
      this.#flush()
      this.#over(new Error('the link is closed'))
    }
    this.#connection.end()
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_TIMEOUT_MS)
    })
    await Promise.race([this.#ended, limit])
    clearTimeout(timer)
    this.#connection.destroy()
  }

  get serverHasJetStream(): boolean {
    return this.#connection.info.jetstream === true
  }

  isSubscribed(key: string): boolean {
    return this.#subscriptions.isLive(key)
  }

  send(lines: string): void {
    this.#queue.push(lines)
    this.#schedule()
  }

  say(subject: string, replyTo: string, text: string): void {
    this.send(`PUB ${subject} ${replyTo === '' ? '' : `${replyTo} `}${Buffer.byteLength(text)}\r\n${text}\r\n`)
  }

  message(bytes: Buffer, bounds: NatsMessageBounds): void {
    if (this.#isOver) return
    if (bounds.subscription <= LAST_LOG_SUBSCRIPTION) {
      if (bounds.subscription !== PROBE_ID) this.#log?.message(bytes, bounds)
      return
    }
    const subscription = this.#subscriptions.get(bounds.subscription)
    if (subscription === undefined) return
    const key = subscription.onlyKey ?? this.#keyIn(bytes, bounds.subjectAt, bounds.subjectEnd)
    if (key !== undefined) this.#deliver(subscription, key, bytes, bounds.payloadAt, bounds.payloadEnd)
  }

  pong(): void {
    this.#isAlive = true
    const round = this.#rounds.answered()
    if (round === undefined) return
    for (const waiter of round.waiters) waiter.done()
    if (round.lastSequence > 0 && !this.#isOver) this.#confirm(round)
    if (!this.#rounds.isOpenEmpty) this.#schedule()
  }

  /** The server says what it has refused before it answers the ping behind that. */
  error(text: string): void {
    if (!this.#isOver && !this.#isAnswered(text)) this.lose(new Error(text))
  }

  info(info: NatsServerInfo): void {
    if (info.ldm === true) this.lose(new Error('the server is about to stop (lame duck mode)'))
  }

  closed(cause: Error): void {
    this.lose(cause)
    this.#tellEnded()
  }

  /** Where there is a log, its messages stand between others, and are not meant. */
  #confirm({ lastSequence, messages }: Readonly<Round>): void {
    if (this.#log === undefined) this.#events.confirmed(lastSequence, true)
    else for (const message of messages) if (message !== undefined) this.#events.confirmed(message.sequence, false)
  }

  #deliver(subscription: NatsSubscription, key: string, bytes: Buffer, start: number, end: number): void {
    // A broader pattern brings it, too; it comes from the log.
    if (this.#log?.logs(key) === true) return
    const delivery = decodeEnvelope(key, bytes, start, end)
    if (delivery === undefined) this.#events.malformed(`an envelope that is cut or of another version, for ${key}`)
    else if (delivery.source !== undefined || this.#subscriptions.isFirstCopy(subscription, key))
      this.#events.deliver(delivery)
  }

  #keyIn(bytes: Buffer, start: number, end: number): string | undefined {
    const key = this.#subjects.keyIn(bytes, start, end)
    if (key === undefined) {
      const subject = bytes.toString('utf8', start, end)
      if (!this.#subjects.isOwn(subject)) this.#events.malformed(`the subject ${subject} is that of no key`)
    }
    return key
  }

  /** Whether whoever asked for what the server complains of could be told. */
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
    // A live subscription that is taken away is as good as a lost link: messages are missed from then on.
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

  /** With an answer under way there is no haste: what the rest of the turn brings goes along. */
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

  #flush(): void {
    const commands = this.#queue
    if (this.#isOver || (commands.length === 0 && this.#rounds.isOpenEmpty)) return
    this.#queue = []
    this.#queuedBytes = 0
    if (!this.#rounds.isOpenEmpty && this.#rounds.pingCount < MAX_PINGS) {
      this.#rounds.close()
      commands.push(PING)
    }
    for (const block of this.#outbox.encode(commands)) this.#connection.write(block)
  }

  /**
   * Messages that come do not count: only an answer proves that what is sent arrives. A large backlog on a slow line may hold the ping
   * up, and moves; on a dead one it stands still.
   */
  #check(): void {
    const { waitingBytes, leftBytes } = this.#connection
    const hasMoved = this.#progress.waitingBytes > 0 && leftBytes > this.#progress.leftBytes
    this.#progress = { waitingBytes, leftBytes }
    this.#silentCheckCount = this.#isAlive || hasMoved ? 0 : this.#silentCheckCount + 1
    this.#isAlive = false
    this.#log?.check()
    if (this.#isOver) return
    if (this.#silentCheckCount >= MAX_SILENT_CHECKS) {
      this.lose(new Error('the server does not answer'))
    } else if (this.#rounds.pingCount === 0 && !this.#isFlushScheduled) {
      this.#rounds.close()
      this.#connection.write(Buffer.from(PING))
    }
  }

  lose(cause: Error): void {
    if (this.#isOver) return
    // Until the probe is answered, the link is nobody's: who waits for it is told.
    const isTold = this.#probe === undefined
    this.#over(cause)
    this.#connection.destroy()
    if (isTold) this.#events.lost(cause)
  }

  #over(cause: Error): void {
    this.#isOver = true
    this.#queue = []
    clearInterval(this.#heartbeat)
    for (const waiter of this.#rounds.takeAllWaiters()) waiter.failed(cause)
    this.#log?.fail(cause)
  }
}
