import type { ClientOptions } from './client-options.js'
import type { ClientCore, ClientPart } from './client-part.js'
import { ConnectionManager } from './connection/manager.js'
import { errorOfServer } from './connection/server-error.js'
import { Emitter } from './events/emitter.js'
import type { ClientError, ClientEvents, ConnectedInfo, State, StateChange } from './events/events.js'
import { HistoryReads } from './listening/history.js'
import { Listens } from './listening/listens.js'
import { Replays } from './listening/replays.js'
import { Requests } from './listening/requests.js'
import { type ResolvedOptions, resolveOptions } from './options.js'
import { type ServerMessage, WebMQError } from './protocol/index.js'
import { Publishes } from './publishing/publishes.js'
import type { KnownTopic, Payload, Topics } from './topics.js'
import type {
  HistoryOptions,
  HistoryResult,
  ListenOptions,
  MessageHandler,
  PublishOptions,
  PublishResult,
  Subscription,
} from './types.js'

/** Default of `flushMs` of `close`. */
const FLUSH_MS = 1_000

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
  readonly #connection: ConnectionManager
  readonly #listens: Listens
  readonly #history: HistoryReads
  readonly #publishes: Publishes
  readonly #requests: Requests
  readonly #parts: ClientPart[] = []
  readonly #options: ResolvedOptions
  #waiting: ((error?: WebMQError) => void)[] = []
  #lostTimer: ReturnType<typeof setTimeout> | undefined
  #isLost = false
  #wasConnected = false
  #isClosing = false

  /** @throws {WebMQError} `E_OPTION_INVALID`, naming the option. */
  constructor(options: ClientOptions) {
    const resolved = resolveOptions(options)
    this.#options = resolved
    this.#connection = new ConnectionManager(resolved, {
      onLive: ({ limits }) => {
        // In this order, so that an app gets the messages that it publishes and listens to.
        this.#listens.up()
        this.#history.up()
        for (const part of this.#parts) part.up()
        this.#publishes.up(limits)
      },
      onDown: () => {
        this.#listens.down()
        this.#requests.down()
        this.#publishes.down()
        for (const part of this.#parts) part.down()
      },
      onState: (change, info) => this.#changed(change, info),
      onMessage: (message) => this.#receive(message),
      onError: (error) => this.#report({ error }),
    })
    this.#publishes = new Publishes(resolved, this.#connection)
    this.#requests = new Requests(this.#connection, resolved.ackTimeoutMs)
    const replays = new Replays()
    this.#listens = new Listens(resolved, this.#connection, this.#requests, replays, {
      onGap: (gap) => this.#emitter.emit('gap', gap),
      onError: (error) => this.#report(error),
    })
    this.#history = new HistoryReads({
      sender: this.#connection,
      requests: this.#requests,
      timeoutMs: resolved.ackTimeoutMs,
      maxReads: resolved.maxMessages,
      replays,
    })
  }

  get state(): State {
    return this.#connection.state
  }

  /**
   * Connects if necessary, and resolves when connected. `listen` and `publish` do not need it.
   * @throws {WebMQError} The error that closed the client: `E_CLOSED`, `E_TOKEN_INVALID`, … A lost connection does not
   * reject the promise.
   */
  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#start()
      if (this.state === 'connected') resolve()
      else this.#waiting.push((error) => (error ? reject(error) : resolve()))
    })
  }

  /**
   * Delivers every message whose key matches `pattern`, across reconnects, until you end the subscription. The same
   * handler with the same pattern is one subscription, however often you add it. Without a handler, iterate over the
   * subscription.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_CLOSED`. If the server refuses the listen, `ready` rejects.
   */
  listen<const K extends string>(
    pattern: K & KnownTopic<T, K>,
    handler: MessageHandler<Payload<T, K>>,
    options?: ListenOptions,
  ): Subscription<Payload<T, K>>
  listen<const K extends string>(pattern: K & KnownTopic<T, K>, options?: ListenOptions): Subscription<Payload<T, K>>
  listen<const K extends string>(
    pattern: K,
    ...rest: readonly [(MessageHandler<Payload<T, K>> | ListenOptions)?, ListenOptions?]
  ): Subscription<Payload<T, K>> {
    this.#start()
    const [first, options] = rest
    const subscription =
      typeof first === 'function'
        ? this.#listens.add(pattern, first as MessageHandler<unknown>, options)
        : this.#listens.add(pattern, undefined, first)
    return subscription as Subscription<Payload<T, K>>
  }

  /**
   * Ends the subscription of this handler, or all subscriptions of the pattern. Resolves when the server has confirmed
   * it, or when there is no connection.
   */
  unlisten(pattern: string, handler?: (...event: never[]) => unknown): Promise<void> {
    return this.#listens.unlisten(pattern, handler)
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
    key: K & KnownTopic<T, K>,
    payload: Payload<T, K>,
    options: PublishOptions = {},
  ): Promise<PublishResult> {
    this.#start()
    return this.#publishes.publish(key, payload, options)
  }

  /**
   * Reads the messages of a key from the broker's log, without listening: the newest `limit` messages (default 100),
   * oldest first. With `since` or `rewind`, reads the oldest ones after that. Waits for a connection if necessary, and
   * asks again after a lost one, for `ackTimeoutMs` in all.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_OPTION_INVALID`, `E_POSITION_INVALID`, `E_FORBIDDEN`, `E_CLOSED`;
   * `E_UNSUPPORTED` if nothing is logged; retryable: `E_TIMEOUT`, `E_QUEUE_FULL`, `E_BROKER_UNAVAILABLE`.
   */
  async history<const K extends string>(
    key: K & KnownTopic<T, K>,
    options?: HistoryOptions,
  ): Promise<HistoryResult<Payload<T, K>>> {
    this.#start()
    return (await this.#history.read(key, options)) as HistoryResult<Payload<T, K>>
  }

  /** Calls `handler` at every `event`. Returns a function that removes the handler. */
  on<E extends keyof ClientEvents>(event: E, handler: (event: ClientEvents[E]) => unknown): () => void {
    return this.#emitter.on(event, handler)
  }

  /**
   * Waits up to `flushMs` (default 1,000) for acknowledgements, then ends the client for good. Pending publishes reject
   * with `E_CLOSED`, loops over subscriptions end, and no timer or socket remains. New calls are refused at once.
   */
  async close({ flushMs = FLUSH_MS }: { readonly flushMs?: number } = {}): Promise<void> {
    this.#isClosing = true
    if (flushMs > 0) await this.#publishes.idle(flushMs)
    this.#connection.stop()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #start(): void {
    if (this.#isClosing || this.state === 'closed') throw new WebMQError('E_CLOSED')
    this.#connection.start()
  }

  #receive(message: ServerMessage): void {
    this.#requests.received()
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
        const isAnswer = this.#publishes.answer(message) || this.#requests.answer(message)
        if (isAnswer || message.verb === 'ok') return
        const error = errorOfServer(message)
        if (message.pattern !== undefined) this.#listens.revoked(message.pattern, error)
        else if (message.key === undefined) this.#report({ error })
        else for (const part of this.#parts) part.receive(message)
        return
      }
      case 'presence':
        for (const part of this.#parts) part.receive(message)
    }
  }

  #changed(change: StateChange, info?: ConnectedInfo): void {
    const { state, previous, error } = change
    const { lostAfterMs } = this.#options
    if (info) clearTimeout(this.#lostTimer)
    else if (previous === 'connected' || previous === 'idle') {
      this.#lostTimer = setTimeout(() => {
        this.#isLost = true
        this.#emitter.emit('lost', { afterMs: lostAfterMs })
      }, lostAfterMs)
    }
    if (state === 'closed') this.#ended(error)
    this.#emitter.emit('state', change)
    if (previous === 'connected') this.#emitter.emit('disconnected', change)
    if (state === 'reconnecting') this.#emitter.emit('reconnecting', change)
    if (info) this.#connected(info)
  }

  #connected(info: ConnectedInfo): void {
    const wasLost = this.#isLost
    this.#isLost = false
    this.#emitter.emit('connected', info)
    if (this.#wasConnected) this.#emitter.emit('reconnected', info)
    this.#wasConnected = true
    if (wasLost) this.#emitter.emit('restored', info)
    for (const settle of this.#waiting.splice(0)) settle()
  }

  #ended(error: WebMQError | undefined): void {
    clearTimeout(this.#lostTimer)
    const reason = error ?? new WebMQError('E_CLOSED')
    this.#requests.down()
    this.#listens.close(error)
    this.#history.close(reason)
    this.#publishes.close(reason)
    for (const part of this.#parts) part.close(reason)
    for (const settle of this.#waiting.splice(0)) settle(reason)
  }

  /** @internal For modules that extend the client; see {@link ClientPart}. */
  add(part: ClientPart): ClientCore {
    this.#start()
    this.#parts.push(part)
    return {
      options: this.#options,
      sender: this.#connection,
      requests: this.#requests,
      report: (error) => this.#report(error),
    }
  }

  #report(error: ClientError): void {
    if (!this.#emitter.emit('error', error)) console.error(error.error)
  }
}
