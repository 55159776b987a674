import type { CoreMessage } from '../protocol/decode-server.js'
import type { WebMQError } from '../protocol/errors.js'
import type { SessionLimits } from '../protocol/messages.js'
import type { RawMessage } from '../protocol/raw-message.js'
import type { ClientOptions } from './client-options.js'
import type { ClientCore, ClientPart } from './client-part.js'
import { type Connection, createConnection } from './connection/connection.js'
import { errorOfServer } from './connection/server-error.js'
import { createTimer } from './connection/timer.js'
import { callSafely } from './events/call-safely.js'
import { Emitter, type Handler } from './events/emitter.js'
import type { ClientError, ClientEvents, ClientStatus, State } from './events/events.js'
import { createPrinter } from './events/printer.js'
import { createListens, type Listens } from './listening/listens.js'
import type { Receiver, Receiving } from './listening/receiver.js'
import { Replays } from './listening/replays.js'
import { createRequests } from './listening/requests.js'
import { resolveOptions } from './options.js'
import { createPublishes, type Publishes } from './publishing/publishes.js'
import type { KnownKey, ListenTopic, Payload, PayloadInput, TopicHandler, Topics } from './topics/topics.js'
import type { ListenOptions, PublishOptions, PublishResult, Subscription } from './types.js'

/** Hears that a connection is live or lost, or that the client is closed. */
interface Listener {
  up?(limits: SessionLimits): void
  down?(): void
  close?(error: WebMQError, isWanted: boolean): void
}

/**
 * A connection to a WebMQ server. It connects on first use, and reconnects until you close it.
 *
 * `T` maps patterns to payloads. The compiler checks keys, payloads and handlers against it.
 */
export class WebMQClient<T = Topics> implements AsyncDisposable {
  readonly #emitter = new Emitter<ClientEvents>((error, event) => {
    // Errors of `error` handlers go to the console: another `error` event would fail again.
    if (event === 'error') console.error(error)
    else this.#report({ error })
  })
  readonly #connection: Connection
  readonly #listens: Listens
  readonly #publishes: Publishes
  /** What this client and its parts share. */
  readonly #core: ClientCore
  readonly #parts: ClientPart[] = []
  readonly #print = createPrinter()
  #waiting: ((error?: WebMQError) => void)[] = []
  readonly #lostTimer = createTimer()
  #isClosing = false
  #openCount = 0
  #status: ClientStatus = Object.freeze({ state: 'idle', lost: false, queueLength: 0 })
  /** The status that handlers know. */
  #toldStatus = this.#status

  /** @throws {WebMQError} `E_OPTION_INVALID`, naming the option. */
  constructor(options: ClientOptions) {
    const resolved = resolveOptions(options)
    this.#connection = createConnection(resolved, {
      up: (limits) => this.#tell((part) => part.up?.(limits)),
      down: () => this.#tell((part) => part.down?.()),
      status: (changes) => this.#changed(changes),
      receive: (message) => this.#receive(message),
      report: (error) => this.#report({ error }),
    })
    this.#publishes = createPublishes(resolved, this.#connection, () => queueMicrotask(() => this.#tellStatus()))
    this.#core = {
      closedBy: () => this.#refusal(),
      options: resolved,
      sender: this.#connection,
      requests: createRequests(this.#connection, resolved.ackTimeoutMs),
      replays: new Replays(),
      report: (error) => this.#report(error),
    }
    this.#listens = createListens(this.#core, (gap) => this.#emitter.emit('gap', gap))
  }

  get state(): State {
    return this.#connection.state
  }

  /** The present state for display: frozen, and the same object until something changes. */
  get status(): ClientStatus {
    const queueLength = this.#publishes.queueLength
    if (queueLength !== this.#status.queueLength) this.#status = Object.freeze({ ...this.#status, queueLength })
    return this.#status
  }

  /**
   * Connects if necessary, and resolves when connected. While the client waits for its next attempt, that begins at once,
   * or as soon as the server allows; one that has taken 2 seconds ends for it. `listen` and `publish` do not need it. You may ignore the
   * promise: its rejection does not crash the process.
   * @throws {WebMQError} The error that closed the client: `E_CLOSED`, `E_TOKEN_INVALID`, … A lost connection does not
   * reject the promise.
   */
  connect(): Promise<void> {
    const connected = new Promise<void>((resolve, reject) => {
      this.#start()
      this.#connection.retry()
      if (this.state === 'connected') resolve()
      else this.#waiting.push((error) => (error ? reject(error) : resolve()))
    })
    connected.catch(() => undefined)
    return connected
  }

  /**
   * Opens a closed client again, whatever has closed it, and resolves when connected. Subscriptions with a handler
   * continue from where they stopped, except those that the app has ended. Publishes that were rejected are not sent.
   */
  open(): Promise<void> {
    this.#isClosing = false
    this.#openCount++
    if (this.state === 'closed') {
      this.#listens.open()
      this.#connection.open()
    }
    return this.connect()
  }

  /**
   * Calls `token()` and sends the new token now, for example after the user's rights have changed. Resolves when the
   * server has accepted it. Without a connection, the next one gets a new token.
   * @throws {WebMQError} `E_TOKEN_UNAVAILABLE`, `E_TOKEN_INVALID`: the connection keeps its token.
   */
  async refreshToken(): Promise<void> {
    this.#start()
    await (this.#connection.isLive ? this.#connection.renew() : this.connect())
  }

  /**
   * Delivers every message whose key matches `pattern`, across reconnects, until you end the subscription. Each call
   * makes a subscription. Instead of a handler, you may pass a {@link Receiver}, such as `loaded(handler, load)`.
   *
   * If the server refuses the listen, or the client is closed, `ready` rejects and the `error` event tells why.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`, `E_POSITION_INVALID`.
   */
  listen<const K extends string>(
    pattern: ListenTopic<T, K>,
    receiving: TopicHandler<T, K> | Receiver<Payload<T, K>>,
    options?: ListenOptions,
  ): Subscription {
    const closedBy = this.#refusal()
    const subscription = this.#listens.add(pattern, receiving as Receiving<unknown>, options, closedBy)
    if (!closedBy) this.#connection.open()
    return subscription
  }

  /**
   * Ends the last subscription of this handler or receiver, or all subscriptions of the pattern. Resolves when the server has
   * confirmed it, or when there is no connection.
   */
  unlisten(pattern: string, receiving?: Receiving<never>): Promise<void> {
    return this.#listens.unlisten(pattern, receiving)
  }

  /**
   * Sends a message to every client that listens with a matching pattern. Resolves when the broker has accepted it, not
   * when anyone has received it. Without a connection, the message waits. If the connection breaks before the answer,
   * the client sends the message again with the same id, and the server drops the duplicate. The payload is encoded, or
   * copied, before this returns.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`, `E_FORBIDDEN`, `E_CLOSED`;
   * retryable with the same id: `E_TIMEOUT`, `E_QUEUE_FULL`, `E_OFFLINE`, `E_DISCONNECTED`, `E_BROKER_UNAVAILABLE`.
   */
  async publish<const K extends string>(
    key: KnownKey<T, K>,
    payload: PayloadInput<T, K>,
    options: PublishOptions = {},
  ): Promise<PublishResult> {
    this.#start()
    return this.#publishes.publish(key, payload, options)
  }

  /** Calls `handler` at every `event`. Returns a function that removes the handler. */
  on<E extends keyof ClientEvents>(event: E, handler: Handler<ClientEvents[E]>): () => void {
    return this.#emitter.on(event, handler)
  }

  /**
   * Waits up to `flushMs` (default 1,000) for acknowledgements, then closes the client. Pending publishes reject with
   * `E_CLOSED`, and no timer or socket remains. New calls are refused at once, until
   * {@link open}.
   */
  async close({ flushMs = 1_000 }: { readonly flushMs?: number } = {}): Promise<void> {
    this.#isClosing = true
    const openCount = this.#openCount
    if (flushMs > 0) await this.#publishes.idle(flushMs)
    if (this.#openCount === openCount) this.#connection.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #start(): void {
    const closedBy = this.#refusal()
    if (closedBy) throw closedBy
    this.#connection.open()
  }

  /** Why new calls are refused. */
  #refusal(): WebMQError | undefined {
    return this.#isClosing || this.state === 'closed' ? this.#connection.closedBy() : undefined
  }

  #receive(message: CoreMessage | RawMessage): void {
    this.#core.requests.received()
    if ('fields' in message) {
      for (const part of this.#parts) part.receive?.(message)
      return
    }
    switch (message.verb) {
      case 'message':
        this.#listens.deliver(message)
        return
      case 'gap':
        this.#listens.gap(message)
        return
      case 'pong':
        this.#listens.advance(message.position)
        return
      case 'ok':
      case 'error': {
        const isAnswer = this.#publishes.answer(message) || this.#core.requests.answer(message)
        if (isAnswer || message.verb === 'ok') return
        const error = errorOfServer(message)
        if (message.pattern !== undefined) this.#listens.revoked(message.pattern, error)
        else if (message.key === undefined) this.#report({ error })
        else for (const part of this.#parts) part.revoked?.(message.key, error)
      }
    }
  }

  #changed(changes: Partial<ClientStatus>): void {
    const { state } = changes
    const isConnected = state === 'connected'
    if (isConnected) this.#lostTimer()
    else if (state && (state === 'connecting' || this.#status.state === 'connected')) {
      this.#lostTimer(() => this.#changed({ lost: true }), this.#core.options.lostAfterMs)
    }
    this.#status = Object.freeze({ ...this.status, ...changes, ...(isConnected && { lost: false }) })
    if (state === 'closed') this.#ended(changes.lastError)
    this.#tellStatus()
    if (isConnected) for (const settle of this.#waiting.splice(0)) settle()
  }

  /** In this order, so that an app gets the messages that it publishes and listens to. */
  #tell(call: (part: Listener) => void): void {
    const all: readonly Listener[] = [this.#listens, this.#core.requests, ...this.#parts, this.#publishes]
    for (const part of all)
      callSafely(
        () => call(part),
        (error) => this.#report({ error }),
      )
  }

  #tellStatus(): void {
    const { status } = this
    const previous = this.#toldStatus
    this.#toldStatus = status
    if (status !== previous) this.#emitter.emit('status', status, previous)
  }

  #ended(error: WebMQError | undefined): void {
    this.#lostTimer()
    const reason = error ?? this.#connection.closedBy()
    const waiting = this.#waiting.splice(0)
    if (error) this.#report({ error })
    this.#tell((part) => part.close?.(reason, !error))
    for (const settle of waiting) settle(reason)
  }

  /** @internal Takes the subscriptions of a client that it replaces, and closes it. */
  replace(previous: WebMQClient): void {
    previous.#core.requests.down()
    this.#listens.adopt(previous.#listens)
    void previous.close()
    // Stores that show the client of `setup` then turn to this one, also if the previous one was closed before.
    queueMicrotask(() => previous.#changed({}))
    if (this.#listens.size > 0) this.#connection.open()
  }

  /** Adds a part to the client, and connects: for modules that extend the client. See {@link ClientPart}. */
  add<P extends ClientPart>(make: (core: ClientCore) => P): P {
    const part = make(this.#core)
    this.#parts.push(part)
    if (!this.#refusal()) this.#connection.open()
    return part
  }

  #report(error: ClientError): void {
    if (!this.#emitter.emit('error', error)) this.#print(error.error)
  }
}
