import { checks } from '../checks.js'
import type { TokenCause } from '../client-options.js'
import type { ClientStatus, ConnectedInfo, State } from '../events/events.js'
import { MAX_TIMER_MS, type ResolvedOptions, socketClassOf, webSocketUrl } from '../options.js'
import { isReconnectable } from '../protocol/close-codes.js'
import { closeCodeOf, WebMQError } from '../protocol/errors.js'
import type { Welcome } from '../protocol/messages.js'
import { backoffMs } from './backoff.js'
import { nowMs } from './clock.js'
import { type Closure, Connection, type ConnectionContext } from './connection.js'
import { isDormant, watchLifecycle } from './lifecycle.js'
import { Renewal } from './renewal.js'
import type { Frame } from './sender.js'
import { askForToken } from './token.js'

/** A shorter connection counts as a failed attempt, so that we do not flood a server that our messages crash. */
const LASTING_MS = 5_000

/** Time to answer a ping after a sleep or a change of network. */
const PROBE_TIMEOUT_MS = 2_000

/** Nothing is known of a next attempt or a last one. */
const WAITING = {
  attempt: undefined,
  retryInMs: undefined,
  code: undefined,
  connection: undefined,
  lastError: undefined,
}

const TOKEN_INVALID = 4501
const TOKEN_EXPIRED = 4009

export interface ConnectionManagerContext extends Pick<ConnectionContext, 'onMessage' | 'onError'> {
  /**
   * A connection is live and nothing was sent on it: listen again, then flush. Called before the app's state changes.
   */
  onLive(welcome: Welcome): void
  onDown(): void
  onStatus(changes: Partial<ClientStatus>): void
}

/** Keeps one connection open: connects, reconnects, gets tokens, and decides when to give up. */
export class ConnectionManager {
  readonly #options: ResolvedOptions
  readonly #context: ConnectionManagerContext
  state: State = 'idle'
  /** Why the client has given up. */
  #closure: Closure | undefined
  #connection: Connection | undefined
  /** Aborted when the attempt fails or its connection ends. */
  #lifetime: AbortController | undefined
  /** Of the attempt, or of the wait for the next one; on a live connection, of the next attempt to renew the token. */
  #timer: ReturnType<typeof setTimeout> | undefined
  #unwatch: (() => void) | undefined
  #url = ''
  #failedAttempts = 0
  #liveSinceMs: number | undefined
  #notBeforeMs = 0
  #cause: TokenCause = 'initial'
  readonly #refusals = checks.refusals?.((lastError) => this.#context.onStatus({ lastError }))
  readonly #renewal = new Renewal()

  constructor(options: ResolvedOptions, context: ConnectionManagerContext) {
    this.#options = options
    this.#context = context
  }

  /** Whether messages may be sent now. */
  get isLive(): boolean {
    return this.state !== 'closed' && !!this.#connection?.isLive
  }

  /** Bytes in the buffer of the socket. */
  get bufferedBytes(): number {
    return this.#connection?.bufferedBytes ?? 0
  }

  /** Passes an encoded message to the socket; only while live. */
  send(frame: Frame, isAnswered?: boolean): void {
    this.#connection?.send(frame, isAnswered)
  }

  /** Connects, if the client is idle or closed. */
  start(): void {
    if (this.state !== 'idle' && this.state !== 'closed') return
    this.#failedAttempts = this.#notBeforeMs = 0
    this.#cause = 'initial'
    this.#unwatch = watchLifecycle({ onWake: () => this.#wake(), onRestore: () => this.#restore() })
    this.#closure = undefined
    this.#become({ ...WAITING, state: 'connecting' })
    this.#connect()
  }

  /**
   * Gets a token and sends it on the live connection; joins a renewal that is running. Resolves when the server has
   * accepted it or, if the connection is lost, the token of the next one.
   */
  renew(): Promise<void> {
    return this.#renewal.start(this.#options.token, this.#lifetime?.signal ?? AbortSignal.abort(), (token) =>
      this.#connection?.authenticate(token),
    )
  }

  /** Ends the connection. A closure is the reason to give up. */
  stop(closure?: Closure): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.#closure = closure
    this.#unwatch?.()
    this.#end()
    this.#refusals?.end()
    this.#connection?.close({ code: 1000, error: new WebMQError('E_CLOSED') })
    this.#renewal.settle(this.closedError())
    // Last: the app may open the client again.
    this.#become({ ...WAITING, state: 'closed', code: closure?.code, lastError: closure?.error })
  }

  /** The error of calls to a closed client. */
  closedError(): WebMQError {
    const { error, code } = this.#closure ?? {}
    const why = error ? `${code} ${error.code}, ${error.message}` : 'by close()'
    return new WebMQError('E_CLOSED', { detail: `${why}; open() opens it again`, cause: error })
  }

  /** The attempt or its connection has ended. */
  #end(): void {
    clearTimeout(this.#timer)
    this.#lifetime?.abort()
  }

  #connect(): void {
    clearTimeout(this.#timer)
    if (isDormant()) return
    const { connectTimeoutMs, url } = this.#options
    const lifetime = new AbortController()
    const { signal } = lifetime
    this.#lifetime = lifetime
    const fail = (error: WebMQError, isFinal = false) => {
      if (this.#connection) this.#connection.fail(error)
      else this.#closed({ code: closeCodeOf(error.code) ?? 1006, reason: error.message, error, isFinal })
    }
    this.#wait(connectTimeoutMs, () =>
      fail(new WebMQError('E_CONNECT_FAILED', { detail: `not within ${connectTimeoutMs} ms` })),
    )
    this.#open(signal).catch((cause: unknown) => {
      if (signal.aborted) return
      const error = cause instanceof WebMQError ? cause : new WebMQError('E_CONNECT_FAILED', { cause })
      // A wrong option stays wrong; a function may return something else.
      fail(error, error.code === 'E_OPTION_INVALID' && typeof url !== 'function')
      // The app's own token() or url() failed: report it. The error that closes the client is reported by itself.
      if (this.state !== 'closed') this.#context.onError(cause)
    })
  }

  async #open(signal: AbortSignal): Promise<void> {
    const options = this.#options
    const { url, heartbeatTimeoutMs } = options
    const socketClass = socketClassOf(options)
    const token = await askForToken(options.token, this.#cause, signal)
    this.#url = webSocketUrl(typeof url === 'function' ? await url() : url)
    if (signal.aborted) return
    this.#connection = new Connection({
      ...this.#context,
      url: this.#url,
      token,
      socketClass,
      heartbeatTimeoutMs,
      onLive: (info, welcome) => this.#live(info, welcome),
      onExpiring: (inMs) => this.#renewUntil(nowMs() + inMs, 0),
      onRenewed: (error) => this.#renewal.settle(error),
      onClosed: (closure) => this.#closed(closure),
    })
  }

  #live(info: ConnectedInfo, welcome: Welcome): void {
    clearTimeout(this.#timer)
    this.#refusals?.end()
    this.#liveSinceMs = nowMs()
    this.#cause = 'initial'
    const limits = Object.freeze(welcome.limits)
    this.#context.onLive(welcome)
    this.#renewal.settle()
    this.#become({ ...WAITING, state: 'connected', connection: info, limits })
  }

  #closed(closure: Closure): void {
    this.#end()
    this.#connection = undefined
    if (this.state === 'closed') return
    if (this.state === 'connected') {
      if (nowMs() - (this.#liveSinceMs ?? 0) >= LASTING_MS) this.#failedAttempts = 0
      this.#context.onDown()
    }
    // Not after the first failure of a lasting connection: a server that restarts has enough to do.
    const isLasting = this.#liveSinceMs === undefined || this.#failedAttempts > 0
    const error = (closure.isRefused && this.#refusals?.refused(this.#url, closure.error, isLasting)) || closure.error
    if (this.#mayRetry(closure)) this.#retry({ ...closure, error })
    else this.stop({ ...closure, error })
  }

  #retry(closure: Closure): void {
    const { random, minMs } = this.#options
    const { retryAfterMs = 0 } = closure
    const retryInMs = retryAfterMs ? retryAfterMs + random() * minMs : backoffMs(this.#failedAttempts, this.#options)
    this.#failedAttempts++
    this.#notBeforeMs = nowMs() + retryAfterMs
    this.#wait(retryInMs, () => this.#connect())
    const { code, error: lastError } = closure
    const attempt = this.#failedAttempts
    this.#become({ state: 'reconnecting', attempt, retryInMs, code, connection: undefined, lastError })
  }

  #mayRetry({ code, isFinal }: Closure): boolean {
    const canRefresh = typeof this.#options.token === 'function'
    const isFirst = canRefresh && this.#cause !== 'rejected'
    if (code === TOKEN_INVALID && isFirst) {
      this.#cause = 'rejected'
      return true
    }
    if (code === TOKEN_EXPIRED && isFirst) this.#cause = 'expiring'
    const isHopeless = isFinal || !isReconnectable(code) || (code === TOKEN_EXPIRED && !canRefresh)
    return !isHopeless && this.#failedAttempts < this.#options.maxAttempts
  }

  #wait(delayMs: number, action: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(action, Math.min(delayMs, MAX_TIMER_MS))
  }

  /**
   * Renews the token until the server has accepted one. After the expiry the server ends the connection, and the next
   * one gets a new token.
   */
  #renewUntil(expiryMs: number, attempt: number): void {
    if (typeof this.#options.token !== 'function') return
    const lifetime = this.#lifetime
    this.renew().catch((error: unknown) => {
      if (lifetime?.signal.aborted) return
      if (error instanceof WebMQError) this.#context.onStatus({ lastError: error })
      this.#context.onError(error)
      const waitMs = backoffMs(attempt, this.#options)
      if (nowMs() + waitMs < expiryMs) this.#wait(waitMs, () => this.#renewUntil(expiryMs, attempt + 1))
    })
  }

  #wake(): void {
    const { random, minMs } = this.#options
    if (this.#connection?.isLive) this.#connection.probe(PROBE_TIMEOUT_MS)
    else this.hasten(random() * minMs)
  }

  /** Makes the next attempt soon, if it waits for one; not before the server allows it. */
  hasten(inMs = 0): void {
    const isWaiting = this.state === 'reconnecting' && this.#lifetime?.signal.aborted
    if (isWaiting) this.#wait(Math.max(this.#notBeforeMs - nowMs(), inMs), () => this.#connect())
  }

  #restore(): void {
    if (this.#connection) this.#connection.fail(new WebMQError('E_DISCONNECTED', { detail: 'page was restored' }))
    else this.#wake()
  }

  #become(changes: Partial<ClientStatus> & Pick<ClientStatus, 'state'>): void {
    this.state = changes.state
    this.#context.onStatus(changes)
  }
}
