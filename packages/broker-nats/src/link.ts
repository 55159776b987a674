import type { Msg, NatsConnection, Status, Subscription } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import {
  decodeEnvelope,
  deferred,
  type Link,
  type LinkContext,
  type LinkEvents,
  type LinkMessage,
  Liveness,
} from 'webmq-server/brokers'
import type { OpenedConnection } from './connect.js'
import { type LogLink, NatsLog, type NatsLogContext } from './log.js'
import { NatsSender, type RoundWaiter, type SenderLink } from './sender.js'
import { NatsSubjects } from './subjects.js'
import { type NatsSubscription, NatsSubscriptions, type SubscriptionsLink } from './subscriptions.js'

/**
 * One connection to a NATS server with the node's subscriptions.
 *
 * Core NATS does not confirm messages. It answers a ping once it has passed everything before it to all subscribers. So
 * a ping after the messages and subscriptions of a turn confirms them. Logged messages go through the stream, which
 * confirms and delivers them.
 */
export class NatsLink implements Link, LogLink, SenderLink, SubscriptionsLink {
  readonly connection: NatsConnection
  readonly context: LinkContext
  readonly events: LinkEvents
  readonly subjects: NatsSubjects
  readonly log: NatsLog | undefined
  readonly sender: NatsSender
  readonly #destroy: () => void
  readonly #nodeSubject: string
  readonly subscriptions: NatsSubscriptions
  readonly liveness: Liveness
  #probe: RoundWaiter | undefined
  /** No more events are reported. */
  #isOver = false

  constructor(
    { connection, destroy }: OpenedConnection,
    context: LinkContext,
    events: LinkEvents,
    log?: NatsLogContext,
  ) {
    this.connection = connection
    this.context = context
    this.events = events
    this.#destroy = destroy
    this.subjects = new NatsSubjects(context.namespace)
    this.#nodeSubject = this.subjects.ofNode(context.node)
    if (log !== undefined) this.log = new NatsLog(this, log)
    this.sender = new NatsSender(this)
    this.subscriptions = new NatsSubscriptions(this)
    this.liveness = new Liveness({
      intervalMs: context.heartbeatMs,
      probe: () => this.sender.probe(),
      silent: (detail) => this.lose(new Error(`the server does not answer: ${detail}`)),
    })
    void this.#watch()
    void connection.closed().then((cause) => {
      this.lose(cause instanceof Error ? cause : new Error('the server has closed the connection'))
    })
  }

  /** Publishes and subscribes to the node's own subject, and opens the log. Resolves when the server allows it. */
  async probe(): Promise<void> {
    const subscription = this.connection.subscribe(this.#nodeSubject, { callback: () => undefined })
    this.connection.publish(this.#nodeSubject)
    const answer = deferred()
    this.#probe = { done: () => answer.resolve(), failed: answer.reject }
    this.sender.wait(this.#probe)
    await answer.promise
    this.#probe = undefined
    subscription.unsubscribe()
    await this.log?.open()
  }

  /** Subscribes, after everything that was sent before. Messages are delivered for `subscription`. */
  subscribe(subject: string, subscription: NatsSubscription): Subscription {
    this.sender.sendQueue()
    return this.connection.subscribe(subject, {
      callback: (error, message) => this.#guarded(error, message, subscription),
    })
  }

  /** Messages of patterns that the log covers come from the log only. */
  async bind(pattern: string): Promise<void> {
    if (this.log?.covers(pattern) !== true) await this.subscriptions.cover.bind(pattern)
  }

  async unbind(pattern: string): Promise<void> {
    if (this.log?.covers(pattern) !== true) await this.subscriptions.cover.unbind(pattern)
  }

  publish(message: LinkMessage): void {
    this.sender.publish(message)
  }

  async close(): Promise<void> {
    if (!this.#isOver) {
      this.sender.sendQueue()
      this.log?.consumer.delete()
      this.#over(new Error('the link is closed'))
      // The server has then read everything. An error means that the connection is lost: nothing is left to read.
      await this.connection.flush().catch(() => undefined)
    }
    await this.connection.close()
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
    // It is lost anyway, and its cause is told.
    this.connection.close().catch(() => undefined)
    if (isTold) this.events.lost(cause)
  }

  #over(cause: Error): void {
    this.#isOver = true
    this.liveness.stop()
    this.sender.over(cause)
    this.log?.fail(cause)
  }

  async #watch(): Promise<void> {
    try {
      for await (const status of this.connection.status()) this.#note(status)
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
  #guarded(error: Error | null, message: Msg, subscription: NatsSubscription): void {
    if (this.#isOver || error !== null) return
    try {
      this.#deliver(subscription, message)
    } catch (cause) {
      this.lose(cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #deliver(subscription: NatsSubscription, message: Msg): void {
    const key = subscription.onlyKey ?? this.#keyOf(message.subject)
    // A broader pattern matches it too, but it comes from the log.
    if (key === undefined || this.log?.logs(key) === true) return
    const delivery = decodeEnvelope(key, message.data)
    if (delivery === undefined) this.events.malformed(`an envelope that is cut or of another version, for ${key}`, key)
    else if (delivery.source !== undefined || this.subscriptions.isFirstCopy(subscription, key))
      this.events.deliver(delivery)
  }

  #keyOf(subject: string): string | undefined {
    const key = this.subjects.keyOf(subject)
    if (key === undefined && !this.subjects.isOwn(subject))
      this.events.malformed(`the subject ${subject} is that of no key`)
    return key
  }

  /** Whether the error belongs to a request, whose caller gets it. */
  #isAnswered(text: string): boolean {
    const complaint = complaintOf(text)
    if (complaint === undefined) return false
    if (complaint.kind === 'too-many-subscriptions')
      return this.#fail(
        this.sender.takeOldestWaiters(),
        `${text}; max_subscriptions of the NATS server bounds the patterns of a node`,
      )
    const { kind, subject } = complaint
    if (subject === this.#nodeSubject) {
      const detail = `${text}; its user must be allowed to publish and to subscribe to ${this.subjects.prefix}>`
      return this.#fail(this.#probe === undefined ? [] : [this.#probe], detail)
    }
    if (this.log?.isAnswered(kind, subject, text) === true) return true
    if (kind === 'publish') return this.#refuse(subject, text)
    // If the server ends a live subscription, messages are missing from then on: the link is lost.
    const subscription = this.subscriptions.awaited(subject)
    return this.#fail(subscription === undefined ? [] : [subscription.waiter], text)
  }

  #refuse(subject: string, text: string): boolean {
    const message = this.sender.take(({ key }) => this.subjects.ofKey(key) === subject)
    if (message !== undefined) this.events.refused(message.sequence, new Error(text))
    return message !== undefined
  }

  #fail(waiters: readonly RoundWaiter[], detail: string): boolean {
    for (const waiter of waiters) waiter.failed(new WebMQError('E_BROKER_REFUSED', { detail }))
    return waiters.length > 0
  }
}

const TOO_MANY_SUBSCRIPTIONS = /maximum subscriptions/i
const VIOLATION = /^Permissions Violation for (Publish|Subscription) to "(.*?)"(?: using queue ".*")?$/i
/** Go's escapes of unprintable characters. Subjects of keys contain nothing else that Go escapes. */
const GO_ESCAPE = /\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))/g

/** An error of the server after which the connection stays up. */
export type NatsComplaint =
  /** The server rejected a message to this subject. */
  | { readonly kind: 'publish'; readonly subject: string }
  /** The server rejected or ended a subscription to this subject. */
  | { readonly kind: 'subscription'; readonly subject: string }
  | { readonly kind: 'too-many-subscriptions' }

/**
 * Reads an error of the server; `undefined` if the connection is useless after it.
 * @param text The message of the library's error: the server's text. The library's own fields keep Go's escapes.
 */
function complaintOf(text: string): NatsComplaint | undefined {
  if (TOO_MANY_SUBSCRIPTIONS.test(text)) return { kind: 'too-many-subscriptions' }
  const [, kind, quoted = ''] = VIOLATION.exec(text) ?? []
  if (kind === undefined) return undefined
  const subject = quoted.replace(GO_ESCAPE, (_, short: string | undefined, long: string | undefined) =>
    String.fromCodePoint(Number.parseInt(short ?? long ?? '', 16)),
  )
  return { kind: kind.toLowerCase() === 'publish' ? 'publish' : 'subscription', subject }
}
