import type { TokenCause } from '../client-options.js'
import type { ConnectedInfo, State, StateChange } from '../events/events.js'
import { MAX_TIMER_MS, type ResolvedOptions, webSocketUrl } from '../options.js'
import { type ClientMessage, isReconnectable, type ServerMessage, WebMQError, type Welcome } from '../protocol/index.js'
import { backoffMs } from './backoff.js'
import { type Closure, Connection } from './connection.js'
import { isDormant, watchLifecycle } from './lifecycle.js'
import { askForToken } from './token.js'

/** A shorter connection counts as a failed attempt, so that we do not flood a server that our messages crash. */
const LASTING_MS = 5_000

/** Time to answer a ping after a sleep or a change of network. */
const PROBE_TIMEOUT_MS = 2_000

const TOKEN_INVALID = 4501
const TOKEN_EXPIRED = 4009

/** Receiver of the manager's events. */
export interface ConnectionManagerContext {
  /**
   * A connection is live and nothing was sent on it: listen again, then flush. Called before the app's state changes.
   */
  onLive(welcome: Welcome): void
  onDown(): void
  onState(change: StateChange, info?: ConnectedInfo): void
  onMessage(message: ServerMessage): void
  onError(error: unknown): void
}

/** Keeps one connection open: connects, reconnects, gets tokens, and decides when to give up. */
export class ConnectionManager {
  readonly #options: ResolvedOptions
  readonly #context: ConnectionManagerContext
  #state: State = 'idle'
  #connection: Connection | undefined
  /** Aborted when the attempt fails or its connection ends. */
  #lifetime: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #unwatch: (() => void) | undefined
  #failedAttempts = 0
  #liveSinceMs = 0
  #notBeforeMs = 0
  #cause: TokenCause = 'initial'

  constructor(options: ResolvedOptions, context: ConnectionManagerContext) {
    this.#options = options
    this.#context = context
  }

  get state(): State {
    return this.#state
  }

  /** Whether messages may be sent now. */
  get isLive(): boolean {
    return this.#state !== 'closed' && !!this.#connection?.isLive
  }

  /** Bytes in the buffer of the socket. */
  get bufferedBytes(): number {
    return this.#connection?.bufferedBytes ?? 0
  }

  /** Passes a message to the socket; only while live. */
  send(message: ClientMessage): void {
    this.#connection?.send(message)
  }

  /** Connects; does nothing after the first call. */
  start(): void {
    if (this.#state !== 'idle') return
    this.#unwatch = watchLifecycle({ onWake: () => this.#wake(), onRestore: () => this.#restore() })
    this.#change('connecting')
    this.#connect()
  }

  /** Ends the connection for good. A closure is the reason to give up. */
  stop(closure?: Closure): void {
    if (this.#state === 'closed') return
    this.#change('closed', closure && { ...describe(closure), terminal: true })
    this.#unwatch?.()
    clearTimeout(this.#timer)
    this.#lifetime?.abort()
    this.#connection?.close({ code: 1000, error: new WebMQError('E_CLOSED') })
  }

  #connect(): void {
    clearTimeout(this.#timer)
    if (isDormant()) return
    const lifetime = new AbortController()
    this.#lifetime = lifetime
    const fail = (error: WebMQError) => {
      if (this.#connection) this.#connection.fail(error)
      else this.#closed({ code: 1006, reason: error.message, error })
    }
    this.#timer = setTimeout(() => {
      fail(new WebMQError('E_CONNECT_FAILED', { detail: `not within ${this.#options.connectTimeoutMs} ms` }))
    }, this.#options.connectTimeoutMs)
    this.#open(lifetime.signal).catch((cause: unknown) => {
      if (lifetime.signal.aborted) return
      // The app's own token() or url() failed: report the error in addition to the state change.
      this.#context.onError(cause)
      fail(cause instanceof WebMQError ? cause : new WebMQError('E_CONNECT_FAILED', { cause }))
    })
  }

  async #open(signal: AbortSignal): Promise<void> {
    const { url, token: source, socketClass, heartbeatTimeoutMs } = this.#options
    const token = await askForToken(source, this.#cause, signal)
    const href = webSocketUrl(typeof url === 'function' ? await url() : url)
    if (signal.aborted) return
    this.#connection = new Connection({
      url: href,
      token,
      socketClass,
      heartbeatTimeoutMs,
      onLive: (info, welcome) => this.#live(info, welcome),
      onMessage: (message) => this.#context.onMessage(message),
      onExpiring: () => void this.#refresh(signal),
      onClosed: (closure) => this.#closed(closure),
      onError: (error) => this.#context.onError(error),
    })
  }

  #live(info: ConnectedInfo, welcome: Welcome): void {
    clearTimeout(this.#timer)
    this.#liveSinceMs = Date.now()
    this.#cause = 'initial'
    this.#context.onLive(welcome)
    this.#change('connected', undefined, info)
  }

  /**
   * Renews the token within the connection. If that fails, the connection expires and the next one gets a new token.
   */
  async #refresh(signal: AbortSignal): Promise<void> {
    if (typeof this.#options.token !== 'function') return
    try {
      const token = await askForToken(this.#options.token, 'expiring', signal)
      if (token !== undefined && !signal.aborted) this.#connection?.authenticate(token)
    } catch (error) {
      this.#context.onError(error)
    }
  }

  #closed(closure: Closure): void {
    clearTimeout(this.#timer)
    this.#lifetime?.abort()
    this.#connection = undefined
    if (this.#state === 'closed') return
    if (this.#state === 'connected') {
      if (Date.now() - this.#liveSinceMs >= LASTING_MS) this.#failedAttempts = 0
      this.#context.onDown()
    }
    if (this.#mayRetry(closure)) this.#retry(closure)
    else this.stop(closure)
  }

  #retry(closure: Closure): void {
    const { random, minMs } = this.#options
    const { retryAfterMs } = closure
    const retryInMs =
      retryAfterMs === undefined ? backoffMs(this.#failedAttempts, this.#options) : retryAfterMs + random() * minMs
    this.#failedAttempts++
    this.#notBeforeMs = Date.now() + (retryAfterMs ?? 0)
    this.#retryIn(retryInMs)
    this.#change('reconnecting', { ...describe(closure), attempt: this.#failedAttempts, retryInMs })
  }

  #mayRetry({ code, isFinal }: Closure): boolean {
    const canRefresh = typeof this.#options.token === 'function'
    const wasRejected = this.#cause === 'rejected'
    if (code === TOKEN_INVALID && canRefresh && !wasRejected) {
      this.#cause = 'rejected'
      return true
    }
    if (code === TOKEN_EXPIRED && canRefresh && !wasRejected) this.#cause = 'expiring'
    const isHopeless = isFinal || !isReconnectable(code) || (code === TOKEN_EXPIRED && !canRefresh)
    return !isHopeless && this.#failedAttempts < this.#options.maxAttempts
  }

  #retryIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#connect(), Math.min(delayMs, MAX_TIMER_MS))
  }

  #wake(): void {
    if (this.#connection?.isLive) this.#connection.probe(PROBE_TIMEOUT_MS)
    else if (this.#lifetime?.signal.aborted ?? true) {
      const { random, minMs } = this.#options
      this.#retryIn(Math.max(this.#notBeforeMs - Date.now(), random() * minMs))
    }
  }

  #restore(): void {
    if (this.#connection) this.#connection.fail(new WebMQError('E_DISCONNECTED', { detail: 'page was restored' }))
    else this.#wake()
  }

  #change(state: State, details?: Partial<StateChange>, info?: ConnectedInfo): void {
    const previous = this.#state
    this.#state = state
    this.#context.onState({ ...details, state, previous }, info)
  }
}

function describe({ code, reason, error }: Closure): Partial<StateChange> {
  return { code, reason, error }
}
