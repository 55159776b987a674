import { checks, explain } from '../checks.js'
import type { TokenCause } from '../client-options.js'
import type { ClientStatus, State } from '../events/events.js'
import { MAX_TIMER_MS, type ResolvedOptions, socketClassOf, webSocketUrl } from '../options.js'
import { isReconnectable } from '../protocol/close-codes.js'
import { type CoreMessage, decodeCoreMessage } from '../protocol/decode-server.js'
import { encodeAuth } from '../protocol/encode-client.js'
import { closeCodeOf, errorOfCloseCode, WebMQError } from '../protocol/errors.js'
import { SUBPROTOCOL } from '../protocol/limits.js'
import type { ServerMessage, Welcome } from '../protocol/messages.js'
import type { RawMessage } from '../protocol/raw-message.js'
import { backoffMs, reconnectMs } from './backoff.js'
import { nowMs } from './clock.js'
import type { Closure } from './closure.js'
import { Heartbeat } from './heartbeat.js'
import { isDormant, isOffline, watchLifecycle } from './lifecycle.js'
import type { Live } from './live.js'
import { Renewal } from './renewal.js'
import type { Frame, Sender } from './sender.js'
import { errorOfServer } from './server-error.js'
import { askForToken } from './token.js'

/** A shorter connection counts as a failed attempt, so that we do not flood a server that our messages crash. */
const LASTING_MS = 5_000

/**
 * Age from which an attempt gives way to another one, when the network or the page is back: it began before that, and
 * would last for `connectTimeoutMs`.
 */
const HANGING_MS = 2_000

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

/** Request id of every `auth`: a connection has at most one in flight. */
const AUTH_ID = 'auth'

/** RFC 6455 §7.4.1: no close frame was received. */
const ABNORMAL_CLOSURE = 1006

export interface ConnectionContext {
  /**
   * A connection is live and nothing was sent on it: listen again, then flush. Called before the app's state changes.
   */
  onLive(welcome: Welcome): void
  onDown(): void
  onStatus(changes: Partial<ClientStatus>): void
  /** A message that the connection does not handle itself. */
  onMessage(message: CoreMessage | RawMessage): void
  onError(error: unknown): void
}

/**
 * Keeps one connection open: connects, authenticates, reconnects, gets tokens, and decides when to give up. Each attempt
 * has a WebSocket of its own.
 */
export class Connection implements Sender {
  readonly #options: ResolvedOptions
  readonly #context: ConnectionContext
  state: State = 'idle'
  /** Why the client has given up. */
  #closure: Closure | undefined
  #live: Live | undefined
  /** Aborted when the attempt fails or its connection ends. */
  #lifetime: AbortController | undefined
  /** Of the attempt, or of the wait for the next one; on a live connection, of the next attempt to renew the token. */
  #timer: ReturnType<typeof setTimeout> | undefined
  #unwatch: (() => void) | undefined
  #url = ''
  #failedAttempts = 0
  /** From then on the attempt gives way to another one. */
  #hangsAtMs = 0
  /** Doubles until an attempt ends by itself: on a slow network, one of them must have the time that it takes. */
  #patienceMs = HANGING_MS
  #liveSinceMs: number | undefined
  #notBeforeMs = 0
  #cause: TokenCause = 'initial'
  readonly #refusals = checks.refusals?.((lastError) => this.#context.onStatus({ lastError }))
  readonly #renewal = new Renewal()

  constructor(options: ResolvedOptions, context: ConnectionContext) {
    this.#options = options
    this.#context = context
  }

  /** Whether messages may be sent: authenticated, and the server has not said `bye`. */
  get isLive(): boolean {
    return !!this.#live?.isLive && !this.#live.bye
  }

  /** Bytes in the buffer of the socket. */
  get bufferedBytes(): number {
    return this.#live?.socket.bufferedAmount ?? 0
  }

  send(frame: Frame, isAnswered = true): void {
    this.#live?.socket.send(frame as never)
    this.#live?.heartbeat?.sent(isAnswered)
  }

  /** Connects, if the client is idle or closed. */
  start(): void {
    if (this.state !== 'idle' && this.state !== 'closed') return
    this.#failedAttempts = this.#notBeforeMs = 0
    this.#cause = 'initial'
    this.#unwatch = watchLifecycle(
      { onWake: () => this.#wake(), onRestore: () => this.#restore() },
      this.#options.lifecycle,
    )
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
      this.send(encodeAuth(AUTH_ID, token)),
    )
  }

  /** Ends the connection. A closure is the reason to give up. */
  stop(closure?: Closure): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.#closure = closure
    this.#unwatch?.()
    this.#refusals?.end()
    this.#drop(1000)
    this.#renewal.settle(this.closedError())
    // Last: the app may open the client again.
    this.#become({ ...WAITING, state: 'closed', code: closure?.code, lastError: closure?.error })
  }

  /** The error of calls to a closed client. */
  closedError(): WebMQError {
    const { error, code } = this.#closure ?? {}
    const why = error ? `${code} ${error.code}, ${error.message}` : 'by close()'
    return new WebMQError('E_CLOSED', { detail: explain(why), cause: error })
  }

  /**
   * Makes the next attempt soon, if there is no connection; not before the server allows it. One that hangs ends, and
   * later ones wait as after a first failure.
   */
  hasten(inMs = 0): void {
    if (!/connecting/.test(this.state)) return
    this.#failedAttempts = 0
    const now = nowMs()
    if (this.#lifetime?.signal.aborted === false) {
      if (now < this.#hangsAtMs) return
      this.#drop(1000)
    }
    this.#wait(Math.max(this.#notBeforeMs - now, inMs), () => this.#connect())
  }

  #connect(): void {
    clearTimeout(this.#timer)
    if (isDormant(this.#options.lifecycle)) return
    const { connectTimeoutMs, url } = this.#options
    const lifetime = new AbortController()
    const { signal } = lifetime
    this.#lifetime = lifetime
    this.#hangsAtMs = nowMs() + this.#patienceMs
    this.#patienceMs *= 2
    this.#wait(connectTimeoutMs, () =>
      this.#fail(new WebMQError('E_CONNECT_FAILED', { detail: explain(`connectTimeoutMs ${connectTimeoutMs}`) })),
    )
    this.#open(signal).catch((cause: unknown) => {
      if (signal.aborted) return
      const error = cause instanceof WebMQError ? cause : new WebMQError('E_CONNECT_FAILED', { cause })
      // A wrong option stays wrong; a function may return something else.
      this.#fail(error, error.code === 'E_OPTION_INVALID' && typeof url !== 'function')
      // The app's own token() or url() failed: report it, unless without a network it had to. The error that closes the
      // client is reported by itself.
      if (this.state !== 'closed' && !isOffline(this.#options.lifecycle)) this.#context.onError(cause)
    })
  }

  async #open(signal: AbortSignal): Promise<void> {
    const { token: source, url } = this.#options
    const socketClass = socketClassOf(this.#options)
    const token = await askForToken(source, this.#cause, signal)
    this.#url = webSocketUrl(typeof url === 'function' ? await url() : url)
    if (signal.aborted) return
    const socket = new socketClass(this.#url, [SUBPROTOCOL])
    const live: Live = { socket, token }
    this.#live = live
    this.#refusals?.asked(this.#url)
    let failure = ''
    socket.binaryType = 'arraybuffer'
    socket.onopen = () => token !== undefined && this.send(encodeAuth(AUTH_ID, token))
    socket.onmessage = ({ data }: { data: string | ArrayBuffer }) => this.#receive(live, data)
    // Browsers give no reason. The `ws` package throws if nobody handles `error`. `close` always follows.
    socket.onerror = ({ message = '' }: { message?: string }) => {
      failure = message
    }
    socket.onclose = ({ code, reason }: { code: number; reason: string }) =>
      this.#lost(live, live.bye ?? { code }, reason || failure)
  }

  #receive(live: Live, data: string | ArrayBuffer): void {
    live.heartbeat?.alive()
    try {
      const message = decodeCoreMessage(typeof data === 'string' ? data : new Uint8Array(data))
      if ('fields' in message) this.#context.onMessage(message)
      else if (message.verb === 'welcome') this.#greet(live, message)
      else if (message.verb === 'bye') live.bye = message
      else if (message.verb === 'expiring') this.#renewUntil(nowMs() + message.inMs, 0)
      else if ('id' in message && message.id === AUTH_ID) this.#authenticated(live, message)
      else this.#context.onMessage(checks.told?.(message, live.token) ?? message)
    } catch (error) {
      // Whatever the server says, it ends neither the client nor the process.
      this.#context.onError(error)
    }
  }

  #greet(live: Live, welcome: Welcome): void {
    live.welcome = welcome
    // Of another `welcome`.
    live.heartbeat?.stop()
    live.heartbeat = new Heartbeat(welcome.heartbeatMs, this.#options.heartbeatTimeoutMs, {
      sendPing: () => this.send('ping', false),
      onTimeout: () => this.#fail(new WebMQError('E_HEARTBEAT_TIMEOUT')),
    })
    if (live.token === undefined && welcome.auth === 'required') {
      const error = new WebMQError('E_UNAUTHENTICATED', { detail: explain('token') })
      this.#closed({ code: 1000, error, isFinal: true })
    } else this.#goLive(live)
  }

  #authenticated(live: Live, answer: Extract<ServerMessage, { verb: 'ok' | 'error' }>): void {
    const error = answer.verb === 'error' ? errorOfServer(answer) : undefined
    if (!error || live.welcome?.auth === 'none') {
      live.authResult = (answer.verb === 'ok' && answer.result) || {}
      if (live.isLive) this.#renewal.settle()
      else this.#goLive(live)
    } else if (live.isLive && closeCodeOf(error.code) === undefined && error.code !== 'E_FORBIDDEN') {
      // The old token counts.
      this.#renewal.settle(error)
    } else {
      // A token of another user (`E_FORBIDDEN`) needs a new connection.
      this.#fail(error)
    }
  }

  #goLive(live: Live): void {
    const { welcome, token, authResult } = live
    if (live.isLive || !welcome || (token !== undefined && !authResult)) return
    live.isLive = true
    const { session, node, version } = welcome
    const { userId } = (authResult ?? {}) as { userId?: string }
    clearTimeout(this.#timer)
    this.#refusals?.reached()
    this.#liveSinceMs = nowMs()
    this.#cause = 'initial'
    const limits = Object.freeze(welcome.limits)
    this.#context.onLive(welcome)
    this.#renewal.settle()
    this.#become({ ...WAITING, state: 'connected', connection: { session, node, version, userId }, limits })
  }

  #lost({ welcome }: Live, { code, retryAfterMs }: Pick<Closure, 'code' | 'retryAfterMs'>, reason: string): void {
    const name = errorOfCloseCode(code) ?? (welcome ? 'E_DISCONNECTED' : 'E_CONNECT_FAILED')
    const error = new WebMQError(name, { detail: `${reason || 'closed'} (${code})` })
    this.#closed({ code, error, retryAfterMs, isRefused: name === 'E_CONNECT_FAILED' })
  }

  /** Ends the attempt, or its connection, with an error and its close code. */
  #fail(error: WebMQError, isFinal = false): void {
    const isRefused = !!this.#live && error.code === 'E_CONNECT_FAILED'
    this.#closed({ code: closeCodeOf(error.code) ?? ABNORMAL_CLOSURE, error, isFinal, isRefused })
  }

  /** Ends the attempt, or its connection, at once, without a closing handshake: a dead network would not answer it. */
  #drop(code: number): void {
    clearTimeout(this.#timer)
    this.#lifetime?.abort()
    const { socket, heartbeat } = this.#live ?? {}
    this.#live = undefined
    heartbeat?.stop()
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    // Apps may use only 1000 and 3000-4999 (RFC 6455 §7.4.2 and the WebSocket API): `close` throws at any other.
    socket.close(code >= 4000 && code < 5000 ? code : 1000)
  }

  #closed(closure: Closure): void {
    this.#drop(closure.code)
    this.#patienceMs = HANGING_MS
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

  #retry({ code, error, retryAfterMs = 0 }: Closure): void {
    const { random, minMs } = this.#options
    const retryInMs = retryAfterMs ? retryAfterMs + random() * minMs : reconnectMs(this.#failedAttempts, this.#options)
    const attempt = ++this.#failedAttempts
    this.#notBeforeMs = nowMs() + retryAfterMs
    this.#wait(retryInMs, () => this.#connect())
    this.#become({ state: 'reconnecting', attempt, retryInMs, code, connection: undefined, lastError: error })
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
    if (this.isLive) this.#live?.heartbeat?.probe(PROBE_TIMEOUT_MS)
    else this.hasten(random() * minMs)
  }

  #restore(): void {
    if (this.#live) this.#fail(new WebMQError('E_DISCONNECTED', { detail: explain('pageshow') }))
    else this.#wake()
  }

  #become(changes: Partial<ClientStatus> & Pick<ClientStatus, 'state'>): void {
    this.state = changes.state
    this.#context.onStatus(changes)
  }
}
