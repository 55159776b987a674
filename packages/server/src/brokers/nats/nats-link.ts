import { WebMQError } from 'webmq-client/protocol'
import { Router } from '../../router.js'
import type { GroupId } from '../../transport.js'
import { Cover } from '../remote/cover.js'
import { decodeEnvelope } from '../remote/envelope.js'
import type { Link, LinkContext, LinkEvents, LinkMessage } from '../remote/link.js'
import type { NatsConnection, NatsConnectionEvents, NatsServerInfo } from './nats-connection.js'
import { ENVELOPE_BYTES, NatsOutbox } from './nats-outbox.js'
import { NatsRounds, type RoundWaiter } from './nats-rounds.js'
import { NatsSubjects, reachesOf } from './nats-subjects.js'

/** What a link subscribes to. */
interface Subscription {
  readonly id: number
  readonly reach: string
  readonly subject: string
  /** The key, when there is but one that it brings. */
  readonly onlyKey: string | undefined
  /** Who waits for it to be live. */
  readonly waiter: RoundWaiter
  /** While the server is known to have it and has not been told to end it. */
  group: GroupId | undefined
}

/** Pings under way at most; what is sent meanwhile is confirmed by the next one. */
const MAX_PINGS = 64
const CHECKS_PER_HEARTBEAT = 2
/** Checks in a row that hear nothing: then the silence has lasted between one and a half and two heartbeats. */
const MAX_SILENT_CHECKS = 3
/** For the server to read what is left and to end its side. */
const CLOSE_TIMEOUT_MS = 2_000
const PING = 'PING\r\n'
const PROBE_ID = 0
const VIOLATION = /^Permissions Violation for (Publish|Subscription) to "(.*?)"(?: using queue ".*")?$/i
const TOO_MANY_SUBSCRIPTIONS = /maximum subscriptions/i
/** Characters that the server does not take for printable, as Go writes them; keys have nothing else that it would escape. */
const GO_ESCAPE = /\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))/g

/**
 * One connection to a NATS server with the node's subscriptions.
 *
 * Core NATS says nothing to a message that it has taken. It answers a ping once it has handed everything before it to all who are
 * subscribed: so a ping behind the messages of a turn confirms them, and the subscriptions of that turn.
 */
export class NatsLink implements Link, NatsConnectionEvents {
  readonly #connection: NatsConnection
  readonly #events: LinkEvents
  readonly #nodeSubject: string
  readonly #subjects: NatsSubjects
  readonly #outbox: NatsOutbox
  readonly #cover: Cover
  readonly #rounds = new NatsRounds()
  /** Those that the server has, or has not yet said that it has ended. */
  readonly #subscriptions = new Map<number, Subscription>()
  readonly #byReach = new Map<string, Subscription>()
  readonly #liveReaches = new Router()
  readonly #liveByGroup = new Map<GroupId, Subscription>()
  readonly #ended: Promise<void>
  readonly #heartbeat: NodeJS.Timeout
  #tellEnded: () => void = () => undefined
  #lastId = PROBE_ID
  /** Messages and lines of this turn. */
  #queue: (LinkMessage | string)[] = []
  #isFlushScheduled = false
  #wasHeard = true
  #silentCheckCount = 0
  #probe: RoundWaiter | undefined
  /** Nothing more is told. */
  #isOver = false

  constructor(connection: NatsConnection, context: LinkContext, events: LinkEvents) {
    this.#connection = connection
    this.#events = events
    this.#subjects = new NatsSubjects(context.namespace)
    this.#nodeSubject = this.#subjects.ofNode(context.node)
    this.#outbox = new NatsOutbox(context.node, this.#subjects)
    this.#cover = new Cover({
      reachesOf,
      subscribe: (reach) => this.#subscribe(reach),
      unsubscribe: (reach) => this.#unsubscribe(reach),
    })
    this.#ended = new Promise((resolve) => {
      this.#tellEnded = resolve
    })
    this.#heartbeat = setInterval(() => this.#check(), context.heartbeatMs / CHECKS_PER_HEARTBEAT)
    connection.handOver(this)
  }

  /**
   * Publishes and subscribes to a subject of the node's own; resolves when the server allows it.
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
  }

  bind(pattern: string): Promise<void> {
    return this.#cover.bind(pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#cover.unbind(pattern)
  }

  publish(message: LinkMessage): void {
    if (this.#isOver) return
    const { max_payload: maxBytes } = this.#connection.info
    const byteCount = message.payload.length + ENVELOPE_BYTES
    if (byteCount > maxBytes) {
      const detail = `${byteCount} bytes with its envelope, and the NATS server takes ${maxBytes}`
      this.#events.refused(message.sequence, new WebMQError('E_PAYLOAD_TOO_LARGE', { detail }))
      return
    }
    this.#rounds.sent(message)
    this.#enqueue(message)
  }

  async close(): Promise<void> {
    if (!this.#isOver) {
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

  message(
    id: number,
    bytes: Buffer,
    subjectAt: number,
    subjectEnd: number,
    payloadAt: number,
    payloadEnd: number,
  ): void {
    const subscription = this.#subscriptions.get(id)
    if (this.#isOver || subscription === undefined) return
    const key = subscription.onlyKey ?? this.#keyIn(bytes, subjectAt, subjectEnd)
    if (key === undefined) return
    const delivery = decodeEnvelope(key, bytes, payloadAt, payloadEnd)
    if (delivery === undefined) this.#events.malformed(`an envelope that is cut or of another version, for ${key}`)
    else if (delivery.source !== undefined || this.#isFirstCopy(subscription, key)) this.#events.deliver(delivery)
  }

  pong(): void {
    const round = this.#rounds.answered()
    if (round === undefined) return
    for (const waiter of round.waiters) waiter.done()
    if (round.lastSequence > 0 && !this.#isOver) this.#events.confirmed(round.lastSequence, true)
    if (!this.#rounds.isOpenEmpty) this.#schedule()
  }

  /** The server says what it has refused before it answers the ping behind that. */
  error(text: string): void {
    if (this.#isOver) return
    const [, kind = '', quoted = ''] = VIOLATION.exec(text) ?? []
    const subject = quoted.replace(GO_ESCAPE, (_, short, long) =>
      String.fromCodePoint(Number.parseInt(short ?? long, 16)),
    )
    const isHandled =
      kind === ''
        ? TOO_MANY_SUBSCRIPTIONS.test(text) && this.#fail(this.#rounds.takeOldestWaiters(), text)
        : subject === this.#nodeSubject
          ? this.#probe !== undefined && this.#fail([this.#probe], text)
          : kind.toLowerCase() === 'publish'
            ? this.#refuse(subject, text)
            : this.#refuseSubscription(subject, text)
    if (!isHandled) this.#lose(new Error(text))
  }

  info(info: NatsServerInfo): void {
    if (info.ldm === true) this.#lose(new Error('the server is about to stop (lame duck mode)'))
  }

  heard(): void {
    this.#wasHeard = true
  }

  closed(cause: Error): void {
    this.#lose(cause)
    this.#tellEnded()
  }

  #keyIn(bytes: Buffer, start: number, end: number): string | undefined {
    const key = this.#subjects.keyIn(bytes, start, end)
    if (key === undefined) {
      const subject = bytes.toString('utf8', start, end)
      if (!this.#subjects.isOfNode(subject)) this.#events.malformed(`the subject ${subject} is that of no key`)
    }
    return key
  }

  /**
   * Whether this is the copy that counts of a message that bears no mark by which copies are known: that of the oldest
   * subscription. While subscriptions change, a second one may come.
   */
  #isFirstCopy({ id }: Subscription, key: string): boolean {
    if (this.#subscriptions.size === 1) return true
    return !this.#liveReaches.match(key).some((group) => (this.#liveByGroup.get(group)?.id ?? id) < id)
  }

  #subscribe(reach: string): Promise<void> {
    return new Promise((resolve, failed) => {
      const id = ++this.#lastId
      const subject = this.#subjects.ofReach(reach)
      const isExact = !reach.includes('*') && !reach.includes('#')
      const waiter: RoundWaiter = {
        done: () => {
          this.#goLive(subscription)
          resolve()
        },
        failed: (cause) => {
          this.#forget(subscription)
          failed(cause)
        },
      }
      const onlyKey = isExact ? reach : undefined
      const subscription: Subscription = { id, reach, subject, onlyKey, waiter, group: undefined }
      this.#subscriptions.set(id, subscription)
      this.#byReach.set(reach, subscription)
      this.#enqueue(`SUB ${subject} ${id}\r\n`)
      this.#await(waiter)
    })
  }

  #unsubscribe(reach: string): Promise<void> {
    const subscription = this.#byReach.get(reach)
    if (subscription === undefined) return Promise.resolve()
    this.#endLive(subscription)
    return new Promise((resolve, failed) => {
      const done = () => {
        this.#subscriptions.delete(subscription.id)
        resolve()
      }
      this.#enqueue(`UNSUB ${subscription.id}\r\n`)
      this.#await({ done, failed })
    })
  }

  #goLive(subscription: Subscription): void {
    // Refused meanwhile.
    if (this.#byReach.get(subscription.reach) !== subscription) return
    subscription.group = this.#liveReaches.add(subscription.reach).group
    this.#liveByGroup.set(subscription.group, subscription)
  }

  #endLive(subscription: Subscription): void {
    if (this.#byReach.get(subscription.reach) === subscription) this.#byReach.delete(subscription.reach)
    if (subscription.group === undefined) return
    this.#liveReaches.remove(subscription.reach)
    this.#liveByGroup.delete(subscription.group)
    subscription.group = undefined
  }

  #forget(subscription: Subscription): void {
    this.#endLive(subscription)
    this.#subscriptions.delete(subscription.id)
  }

  #refuse(subject: string, text: string): boolean {
    const message = this.#rounds.take(({ key }) => this.#subjects.ofKey(key) === subject)
    if (message !== undefined) this.#events.refused(message.sequence, new Error(text))
    return message !== undefined
  }

  /** A live subscription that is taken away is as good as a lost link: messages are missed from then on. */
  #refuseSubscription(subject: string, text: string): boolean {
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.subject !== subject || subscription.group !== undefined) continue
      return this.#fail([subscription.waiter], text)
    }
    return false
  }

  #fail(waiters: readonly RoundWaiter[], text: string): boolean {
    const detail = `${text}; its user must be allowed to publish and to subscribe to ${this.#subjects.prefix}>`
    for (const waiter of waiters) waiter.failed(new WebMQError('E_BROKER_REFUSED', { detail }))
    return waiters.length > 0
  }

  #enqueue(command: LinkMessage | string): void {
    this.#queue.push(command)
    this.#schedule()
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
    if (this.#rounds.pingCount === 0) queueMicrotask(() => this.#flush())
    else setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#isFlushScheduled = false
    if (this.#isOver) return
    const commands = this.#queue
    this.#queue = []
    if (!this.#rounds.isOpenEmpty && this.#rounds.pingCount < MAX_PINGS) {
      this.#rounds.close()
      commands.push(PING)
    }
    for (const block of this.#outbox.encode(commands)) this.#connection.write(block)
  }

  #check(): void {
    this.#silentCheckCount = this.#wasHeard ? 0 : this.#silentCheckCount + 1
    this.#wasHeard = false
    if (this.#silentCheckCount >= MAX_SILENT_CHECKS) {
      this.#lose(new Error('the server is silent'))
    } else if (this.#rounds.pingCount === 0 && !this.#isFlushScheduled) {
      this.#rounds.close()
      this.#connection.write(Buffer.from(PING))
    }
  }

  #lose(cause: Error): void {
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
  }
}
