import type { WireLink, WireSession } from '../broker.js'
import type { ModelCore, Publisher } from './core.js'
import { isAllowed, isDenied, type NatsUser } from './permissions.js'
import {
  type ClientOperation,
  ClientReader,
  type ConnectOptions,
  encodeMessage,
  type NatsMessage,
  NO_BYTES,
  ProtocolViolation,
  quoted,
  statusHeaders,
} from './protocol.js'

const MAX_UNANSWERED_PINGS = 2

/** A subscription of a client. */
class ClientSubscription {
  readonly pattern: string
  readonly connection: NatsClientConnection
  readonly #sid: string
  count = 0
  /** Ends it; 0: nothing does. */
  maxCount = 0

  constructor(connection: NatsClientConnection, pattern: string, sid: string) {
    this.connection = connection
    this.pattern = pattern
    this.#sid = sid
  }

  take(message: NatsMessage, shown: string): void {
    if (isDenied(this.connection.user.subscribe, message.subject)) return
    this.count++
    this.connection.send(encodeMessage(message, shown, this.#sid))
    if (this.count === this.maxCount) this.connection.unsubscribe(this.#sid)
  }
}

/** One client of the model. */
export class NatsClientConnection implements WireSession, Publisher {
  readonly #model: ModelCore
  readonly #link: WireLink
  readonly #left: () => void
  readonly #reader: ClientReader
  readonly #subscriptions = new Map<string, ClientSubscription>()
  #options: ConnectOptions | undefined
  #pingTimer: NodeJS.Timeout | undefined
  #unansweredPings = 0
  #isOver = false
  user: NatsUser = {}

  /** @param left Called when it has ended. */
  constructor(model: ModelCore, link: WireLink, info: object, left: () => void) {
    this.#model = model
    this.#left = left
    this.#link = link
    this.#reader = new ClientReader(model.options.maxPayloadBytes)
    this.send(Buffer.from(`INFO ${JSON.stringify(info)} \r\n`))
    this.#waitForPing()
  }

  get name(): string {
    return this.#options?.name ?? ''
  }

  get subjects(): readonly string[] {
    return [...this.#subscriptions.values()].map(({ pattern }) => pattern)
  }

  receive(bytes: Uint8Array): void {
    if (this.#isOver) return
    try {
      for (const operation of this.#reader.read(bytes)) {
        this.#take(operation)
        if (this.#isOver) return
      }
    } catch (cause) {
      if (!(cause instanceof ProtocolViolation)) throw cause
      this.#refuse(cause.message)
    }
  }

  closed(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#pingTimer)
    for (const subscription of this.#subscriptions.values()) this.#model.subscribers.delete(subscription)
    this.#subscriptions.clear()
    this.#left()
  }

  /** The model ends it. */
  end(how: 'end' | 'reset'): void {
    if (this.#isOver) return
    this.closed()
    this.#link.end(how)
  }

  send(bytes: Uint8Array): void {
    if (!this.#isOver) this.#link.send(bytes)
  }

  unsubscribe(sid: string): void {
    const subscription = this.#subscriptions.get(sid)
    if (subscription === undefined) return
    this.#subscriptions.delete(sid)
    this.#model.subscribers.delete(subscription)
  }

  /** Nobody has got what this client has published with a subject for answers. */
  tellNoResponders(reply: string): void {
    if (this.#options?.no_responders !== true) return
    const answer = { subject: reply, reply: '', headers: statusHeaders('503'), payload: NO_BYTES }
    for (const subscriber of this.#model.subscribers.match(reply))
      if (subscriber instanceof ClientSubscription && subscriber.connection === this) subscriber.take(answer, reply)
  }

  #take(operation: ClientOperation): void {
    if (operation.verb === 'CONNECT') this.#options = operation.options
    if (!this.#isLetIn()) this.#refuse('Authorization Violation')
    else if (operation.verb === 'PING') this.send(Buffer.from('PONG\r\n'))
    else if (operation.verb === 'PONG') this.#unansweredPings = 0
    else if (operation.verb === 'SUB') this.#subscribe(operation)
    else if (operation.verb === 'UNSUB') this.#unsubscribe(operation)
    else if (operation.verb === 'PUB') this.#publish(operation)
  }

  #publish(message: NatsMessage): void {
    if (isAllowed(this.user.publish, message.subject)) this.#model.publish(message, this)
    else this.#complain(`Permissions Violation for Publish to ${quoted(message.subject)}`)
  }

  #isLetIn(): boolean {
    const { users } = this.#model.options
    if (users.length === 0) return true
    const { user, pass, auth_token } = this.#options ?? {}
    const known = users.find((each) =>
      each.token === undefined
        ? user !== undefined && each.user === user && each.password === pass
        : each.token === auth_token,
    )
    this.user = known ?? {}
    return known !== undefined
  }

  #subscribe({ subject, sid }: { readonly subject: string; readonly sid: string }): void {
    const { maxSubscriptions } = this.#model.options
    if (!isAllowed(this.user.subscribe, subject))
      this.#complain(`Permissions Violation for Subscription to ${quoted(subject)}`)
    else if (maxSubscriptions !== undefined && this.#subscriptions.size >= maxSubscriptions)
      this.#complain('maximum subscriptions exceeded')
    else {
      const subscription = new ClientSubscription(this, subject, sid)
      this.#subscriptions.set(sid, subscription)
      this.#model.subscribers.add(subscription)
    }
  }

  #unsubscribe({ sid, maxCount }: { readonly sid: string; readonly maxCount: number }): void {
    const subscription = this.#subscriptions.get(sid)
    if (subscription === undefined) return
    subscription.maxCount = maxCount
    if (subscription.count >= maxCount) this.unsubscribe(sid)
  }

  /** The connection stays. */
  #complain(text: string): void {
    this.send(Buffer.from(`-ERR '${text}'\r\n`))
  }

  #refuse(text: string): void {
    this.#complain(text)
    this.end('end')
  }

  #waitForPing(): void {
    this.#pingTimer = setTimeout(() => {
      if (this.#unansweredPings >= MAX_UNANSWERED_PINGS) this.#refuse('Stale Connection')
      else {
        this.#unansweredPings++
        this.send(Buffer.from('PING\r\n'))
        this.#waitForPing()
      }
    }, this.#model.options.pingIntervalMs)
  }
}
