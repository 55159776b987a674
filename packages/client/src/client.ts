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

/** How long `close` waits for acknowledgements unless told otherwise. */
const FLUSH_MS = 1_000

/**
 * A connection to a WebMQ server that looks after itself: it connects when it is first used, reconnects until it is
 * closed, and says what became of everything.
 *
 * `T` maps patterns to payloads, for keys, payloads and handlers to be checked against.
 */
export class WebMQClient<T = Topics> implements AsyncDisposable {
  readonly #emitter = new Emitter<ClientEvents>((error, event) => {
    // An error handler that fails must not be told about it: it would fail again.
    if (event === 'error') console.error(error)
    else this.#report({ error })
  })
  readonly #connection: ConnectionManager
  readonly #listens: Listens
  readonly #history: HistoryReads
  readonly #publishes: Publishes
  readonly #requests: Requests
  readonly #lostAfterMs: number
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
    this.#lostAfterMs = resolved.lostAfterMs
    this.#connection = new ConnectionManager(resolved, {
      onLive: ({ limits }) => {
        // In this order: an app that listens to what it publishes gets it.
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
   * Connects, if need be, and resolves when connected. `listen` and `publish` do not need it.
   * @throws {WebMQError} What has closed the client: `E_CLOSED`, `E_TOKEN_INVALID`, … Lost connections do not reject it.
   */
  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#start()
      if (this.state === 'connected') resolve()
      else this.#waiting.push((error) => (error ? reject(error) : resolve()))
    })
  }

  /**
   * Gets every message whose key matches `pattern`, until told otherwise, over all reconnects. The same handler with the
   * same pattern is one subscription, however often it is added. Without a handler, iterate over the subscription.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_CLOSED`. What the server thinks of it comes with `ready`.
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

  /** Ends what `listen` began: of this handler, or of all. Resolves when the server has confirmed it, or is not there. */
  unlisten(pattern: string, handler?: (...event: never[]) => unknown): Promise<void> {
    return this.#listens.unlisten(pattern, handler)
  }

  /**
   * Sends a message to everyone who listens with a matching pattern. Resolves when the broker has it, not when anyone has
   * received it. While the connection is away it waits; in flight while the connection is lost, it is sent again with the
   * same id and de-duplicated by the server. The payload is encoded, or copied, before this returns.
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
   * Reads what the broker's log holds of a key, without listening: the newest `limit` messages (default 100), oldest first; with
   * `since` or `rewind` the oldest ones after that. Waits for a connection if need be, and asks again when one is lost, for
   * `ackTimeoutMs` in all.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_OPTION_INVALID`, `E_POSITION_INVALID`, `E_FORBIDDEN`, `E_CLOSED`; `E_UNSUPPORTED` when
   * nothing is logged; retryable: `E_TIMEOUT`, `E_QUEUE_FULL`, `E_BROKER_UNAVAILABLE`.
   */
  async history<const K extends string>(
    key: K & KnownTopic<T, K>,
    options?: HistoryOptions,
  ): Promise<HistoryResult<Payload<T, K>>> {
    this.#start()
    return (await this.#history.read(key, options)) as HistoryResult<Payload<T, K>>
  }

  /** Calls `handler` at every `event`; returns what ends that. */
  on<E extends keyof ClientEvents>(event: E, handler: (event: ClientEvents[E]) => unknown): () => void {
    return this.#emitter.on(event, handler)
  }

  /**
   * Waits up to `flushMs` (default 1,000) for publishes to be settled, then ends everything for good: what is left rejects
   * with `E_CLOSED`, loops over subscriptions end, no timer or socket stays behind. New calls are refused at once.
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
    if (info) clearTimeout(this.#lostTimer)
    else if (previous === 'connected' || previous === 'idle') {
      this.#lostTimer = setTimeout(() => {
        this.#isLost = true
        this.#emitter.emit('lost', { afterMs: this.#lostAfterMs })
      }, this.#lostAfterMs)
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

  /** @internal For modules that add to a client; see {@link ClientPart}. */
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
