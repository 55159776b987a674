import { isReconnectable } from '../../protocol/close-codes.js'
import { decodeCoreMessage } from '../../protocol/decode-server.js'
import { encodeAuth } from '../../protocol/encode-client.js'
import { closeCodeOf, errorOfCloseCode, WebMQError } from '../../protocol/errors.js'
import { SUBPROTOCOL } from '../../protocol/limits.js'
import type { ServerMessage, Welcome } from '../../protocol/messages.js'
import type { TokenCause, WebSocketLike } from '../client-options.js'
import type { ClientStatus, State } from '../events/events.js'
import { type ResolvedOptions, socketClassOf, webSocketUrl } from '../options.js'
import { backoffMs, reconnectMs } from './backoff.js'
import { nowMs } from './clock.js'
import type { Closure } from './closure.js'
import { type ConnectionContext, watched } from './context.js'
import { createHeartbeat, type Heartbeat } from './heartbeat.js'
import { isDormant, isOffline, watchLifecycle } from './lifecycle.js'
import type { Frame, Sender } from './sender.js'
import { errorOfServer } from './server-error.js'
import { createTimer } from './timer.js'
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

type From<V extends ServerMessage['verb']> = Extract<ServerMessage, { verb: V }>

export interface Connection extends Sender {
  readonly state: State
  /** Connects, if the client is idle or closed. */
  open(): void
  /**
   * Gets a token and sends it on the live connection; joins a renewal that is running. Resolves when the server has
   * accepted it or, if the connection is lost, the token of the next one.
   */
  renew(): Promise<void>
  /** Ends the connection. A closure is the reason to give up. */
  close(closure?: Closure): void
  /** The error of calls to a closed client. */
  closedBy(): WebMQError
  /**
   * Makes the next attempt soon, if there is no connection; not before the server allows it. One that hangs ends, and
   * later ones wait as after a first failure.
   */
  retry(inMs?: number): void
}

/**
 * Keeps one connection open: connects, authenticates, reconnects, gets tokens, and decides when to give up. Each attempt
 * has a WebSocket of its own.
 */
export function createConnection(options: ResolvedOptions, context: ConnectionContext): Connection {
  const on = watched(context)
  const { connectTimeoutMs, lifecycle = globalThis, minMs, random, token: source, url } = options
  const canRefresh = typeof source === 'function'
  let state: State = 'idle'
  /** Why the client has given up. */
  let closure: Closure | undefined
  /** Of the attempt, or of the wait for the next one; on a live connection, of the next attempt to renew the token. */
  const timer = createTimer()
  let unwatch: (() => void) | undefined
  let failedAttempts = 0
  /** From then on the attempt gives way to another one. */
  let hangsAtMs = 0
  /** Doubles until an attempt ends by itself: on a slow network, one of them must have the time that it takes. */
  let patienceMs = HANGING_MS
  let liveSinceMs = 0
  let notBeforeMs = 0
  let cause: TokenCause = 'initial'
  let renewal: Promise<void> | undefined
  /** The server has answered, or another connection is live. */
  let settleRenewal: ((error?: unknown) => void) | undefined

  // What is of one attempt and its connection, until `drop`.

  /** Aborted when it ends. */
  let lifetime = new AbortController()
  let socket: WebSocketLike | undefined
  let token: string | undefined
  let heartbeat: Heartbeat | undefined
  let welcome: Welcome | undefined
  /** Absent until `auth` was answered. */
  let login: unknown
  /** Authenticated: it may send anything. */
  let isLive = false
  let bye: From<'bye'> | undefined

  function send(frame: Frame, isAnswered = true): void {
    socket?.send(frame as never)
    heartbeat?.sent(isAnswered)
  }

  function begin(): void {
    if (state !== 'idle' && state !== 'closed') return
    failedAttempts = notBeforeMs = 0
    cause = 'initial'
    unwatch = watchLifecycle(wake, restore, lifecycle)
    closure = undefined
    become({ ...WAITING, state: 'connecting' })
    connect()
  }

  function close(reason?: Closure): void {
    if (state === 'closed') return
    state = 'closed'
    closure = reason
    unwatch?.()
    drop(1000)
    settleRenewal?.(closedBy())
    // Last: the app may open the client again.
    become({ ...WAITING, state, code: reason?.code, lastError: reason?.error })
  }

  function closedBy(): WebMQError {
    const { error, code } = closure ?? {}
    const detail = error ? `${code} ${error.code}, ${error.message}` : 'by close()'
    return new WebMQError('E_CLOSED', { detail, cause: error })
  }

  function retry(inMs = 0): void {
    if (!/connecting/.test(state)) return
    failedAttempts = 0
    const now = nowMs()
    if (!lifetime.signal.aborted) {
      if (now < hangsAtMs) return
      drop(1000)
    }
    timer(connect, Math.max(notBeforeMs - now, inMs))
  }

  function connect(): void {
    timer()
    if (isDormant(lifecycle)) return
    lifetime = new AbortController()
    const { signal } = lifetime
    hangsAtMs = nowMs() + patienceMs
    patienceMs *= 2
    timer(
      () => fail(new WebMQError('E_CONNECT_FAILED', { detail: `connectTimeoutMs ${connectTimeoutMs}` })),
      connectTimeoutMs,
    )
    open(signal).catch((failure: unknown) => {
      if (signal.aborted) return
      const error = failure instanceof WebMQError ? failure : new WebMQError('E_CONNECT_FAILED', { cause: failure })
      // A wrong option stays wrong; a function may return something else.
      fail(error, error.code === 'E_OPTION_INVALID' && typeof url !== 'function')
      // The app's own token() or url() failed: report it, unless without a network it had to. The error that closes the
      // client is reported by itself.
      if (state !== 'closed' && !isOffline(lifecycle)) on.report(failure)
    })
  }

  async function open(signal: AbortSignal): Promise<void> {
    const socketClass = socketClassOf(options)
    const given = await askForToken(source, cause, signal)
    const address = webSocketUrl(typeof url === 'function' ? await url() : url)
    if (signal.aborted) return
    const opened = new socketClass(address, [SUBPROTOCOL])
    socket = opened
    token = given
    on.asked?.(address, token)
    let failure = ''
    opened.binaryType = 'arraybuffer'
    opened.onopen = () => token !== undefined && send(encodeAuth(AUTH_ID, token))
    opened.onmessage = receive
    // Browsers give no reason. The `ws` package throws if nobody handles `error`. `close` always follows.
    opened.onerror = ({ message = '' }: { message?: string }) => {
      failure = message
    }
    opened.onclose = (event: { code: number; reason: string }) => {
      const { code, retryAfterMs }: { code: number; retryAfterMs?: number | undefined } = bye ?? event
      const name = errorOfCloseCode(code) ?? (welcome ? 'E_DISCONNECTED' : 'E_CONNECT_FAILED')
      const error = new WebMQError(name, { detail: `${event.reason || failure || 'closed'} (${code})` })
      ended({ code, error, retryAfterMs })
    }
  }

  function receive({ data }: { data: string | ArrayBuffer }): void {
    heartbeat?.alive()
    try {
      const message = decodeCoreMessage(typeof data === 'string' ? data : new Uint8Array(data))
      if ('fields' in message) on.receive(message)
      else if (message.verb === 'welcome') greet(message)
      else if (message.verb === 'bye') bye = message
      else if (message.verb === 'expiring') renewUntil(nowMs() + message.inMs, 0)
      else if ('id' in message && message.id === AUTH_ID) authenticated(message)
      else on.receive(message)
    } catch (error) {
      // Whatever the server says, it ends neither the client nor the process.
      on.report(error)
    }
  }

  function greet(message: Welcome): void {
    welcome = message
    // Of another `welcome`.
    heartbeat?.close()
    heartbeat = createHeartbeat(
      message.heartbeatMs,
      options.heartbeatTimeoutMs,
      () => send('ping', false),
      () => fail(new WebMQError('E_HEARTBEAT_TIMEOUT')),
    )
    if (token === undefined && message.auth === 'required') {
      ended({ code: 1000, error: new WebMQError('E_UNAUTHENTICATED', { detail: 'token' }) }, true)
    } else goLive()
  }

  function authenticated(answer: From<'ok'> | From<'error'>): void {
    const error = answer.verb === 'error' ? errorOfServer(answer) : undefined
    if (!error || welcome?.auth === 'none') {
      login = (answer.verb === 'ok' && answer.result) || {}
      if (isLive) settleRenewal?.()
      else goLive()
    } else if (isLive && closeCodeOf(error.code) === undefined && error.code !== 'E_FORBIDDEN') {
      // The old token counts.
      settleRenewal?.(error)
    } else {
      // A token of another user (`E_FORBIDDEN`) needs a new connection.
      fail(error)
    }
  }

  function goLive(): void {
    if (isLive || !welcome || (token !== undefined && !login)) return
    isLive = true
    const { session, node, version } = welcome
    const { userId } = (login ?? {}) as { userId?: string }
    timer()
    liveSinceMs = nowMs()
    cause = 'initial'
    const limits = Object.freeze(welcome.limits)
    on.up(limits)
    settleRenewal?.()
    become({ ...WAITING, state: 'connected', connection: { session, node, version, userId }, limits })
  }

  /** Ends the attempt, or its connection, with an error and its close code. */
  function fail(error: WebMQError, isFinal?: boolean): void {
    ended({ code: closeCodeOf(error.code) ?? ABNORMAL_CLOSURE, error }, isFinal)
  }

  /** Ends the attempt, or its connection, at once, without a closing handshake: a dead network would not answer it. */
  function drop(code: number): void {
    timer()
    lifetime.abort()
    heartbeat?.close()
    const dropped = socket
    socket = heartbeat = welcome = login = bye = undefined
    isLive = false
    if (!dropped) return
    dropped.onopen = dropped.onmessage = dropped.onclose = null
    // Apps may use only 1000 and 3000-4999 (RFC 6455 §7.4.2 and the WebSocket API): `close` throws at any other.
    dropped.close(code >= 4000 && code < 5000 ? code : 1000)
  }

  /** @param isFinal Do not reconnect, whatever the code. */
  function ended({ code, error: failure, retryAfterMs = 0 }: Closure, isFinal?: boolean): void {
    drop(code)
    patienceMs = HANGING_MS
    if (state === 'closed') return
    if (state === 'connected') {
      if (nowMs() - liveSinceMs >= LASTING_MS) failedAttempts = 0
      on.down()
    }
    const error = on.failed?.(failure, failedAttempts) ?? failure
    const isFirst = canRefresh && cause !== 'rejected'
    const isRejected = code === TOKEN_INVALID && isFirst
    if (isRejected) cause = 'rejected'
    if (code === TOKEN_EXPIRED && isFirst) cause = 'expiring'
    const isHopeless = isFinal || !isReconnectable(code) || (code === TOKEN_EXPIRED && !canRefresh)
    if (!isRejected && (isHopeless || failedAttempts >= options.maxAttempts)) {
      close({ code, error })
      return
    }
    const retryInMs = retryAfterMs ? retryAfterMs + random() * minMs : reconnectMs(failedAttempts, options)
    const attempt = ++failedAttempts
    notBeforeMs = nowMs() + retryAfterMs
    timer(connect, retryInMs)
    become({ state: 'reconnecting', attempt, retryInMs, code, connection: undefined, lastError: error })
  }

  function renew(): Promise<void> {
    const { signal } = lifetime
    renewal ??= new Promise((resolve, reject) => {
      settleRenewal = (error) => {
        renewal = undefined
        if (error) reject(error)
        else resolve()
      }
      askForToken(source, 'expiring', signal).then(
        (fresh) => {
          if (signal.aborted) return
          if (fresh) send(encodeAuth(AUTH_ID, fresh))
          else settleRenewal?.()
        },
        (error) => signal.aborted || settleRenewal?.(error),
      )
    })
    return renewal
  }

  /**
   * Renews the token until the server has accepted one. After the expiry the server ends the connection, and the next
   * one gets a new token.
   */
  function renewUntil(expiryMs: number, attempt: number): void {
    if (!canRefresh) return
    const { signal } = lifetime
    renew().catch((error: unknown) => {
      if (signal.aborted) return
      if (error instanceof WebMQError) on.status({ lastError: error })
      on.report(error)
      const waitMs = backoffMs(attempt, options)
      if (nowMs() + waitMs < expiryMs) timer(() => renewUntil(expiryMs, attempt + 1), waitMs)
    })
  }

  /** The network or the page is back: retry now, and check a live connection. */
  function wake(): void {
    if (isLive && !bye) heartbeat?.probe(PROBE_TIMEOUT_MS)
    else retry(random() * minMs)
  }

  /** The page returned from the back/forward cache. Browsers cut the connections of such pages without an event. */
  function restore(): void {
    if (socket) fail(new WebMQError('E_DISCONNECTED', { detail: 'pageshow' }))
    else wake()
  }

  function become(changes: Partial<ClientStatus> & Pick<ClientStatus, 'state'>): void {
    state = changes.state
    on.status(changes)
  }

  return {
    get state() {
      return state
    },
    get isLive() {
      return isLive && !bye
    },
    get bufferedBytes() {
      return socket?.bufferedAmount ?? 0
    },
    send,
    open: begin,
    renew,
    close,
    closedBy,
    retry,
  }
}
