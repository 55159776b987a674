import type { WebSocketConstructor, WebSocketLike } from '../client-options.js'
import type { ConnectedInfo } from '../events/events.js'
import { type CoreMessage, decodeCoreMessage } from '../protocol/decode-server.js'
import { encodeAuth } from '../protocol/encode-client.js'
import { closeCodeOf, errorOfCloseCode, WebMQError } from '../protocol/errors.js'
import { SUBPROTOCOL } from '../protocol/limits.js'
import type { ServerMessage, Welcome } from '../protocol/messages.js'
import type { RawMessage } from '../protocol/raw-message.js'
import { Heartbeat } from './heartbeat.js'
import type { Frame } from './sender.js'
import { errorOfServer } from './server-error.js'

/** Request id of every `auth`: a connection has at most one in flight. */
const AUTH_ID = 'auth'

/** RFC 6455 §7.4.1: no close frame was received. */
const ABNORMAL_CLOSURE = 1006

/** Why and how a connection ended. */
export interface Closure {
  readonly code: number
  readonly error: WebMQError
  readonly reason?: string | undefined
  /** The server asks the client not to return earlier. */
  readonly retryAfterMs?: number | undefined
  /** `true`: do not reconnect, whatever the code. */
  readonly isFinal?: boolean | undefined
  /** Whether the server's answer to the upgrade request was not a WebSocket, or there was no answer. */
  readonly isRefused?: boolean
}

export interface ConnectionContext {
  readonly url: string
  readonly socketClass: WebSocketConstructor
  readonly token: string | undefined
  readonly heartbeatTimeoutMs: number
  /** The connection is authenticated and may send anything. Called at most once. */
  onLive(info: ConnectedInfo, welcome: Welcome): void
  /** A message that the connection does not handle itself. */
  onMessage(message: CoreMessage | RawMessage): void
  onExpiring(inMs: number): void
  /** The server has answered to a token that was sent on the live connection; with an error, the old one counts. */
  onRenewed(error?: WebMQError): void
  /** Called exactly once, unless the constructor throws. No callback follows it. */
  onClosed(closure: Closure): void
  onError(error: unknown): void
}

/**
 * One WebSocket from the handshake to the end: subprotocol, `welcome`, authentication, heartbeat, `bye`. It is not
 * reused after it has closed.
 * @throws The error of the WebSocket's constructor, for example for a URL that the page's policy forbids.
 */
export class Connection {
  readonly #context: ConnectionContext
  readonly #socket: WebSocketLike
  #heartbeat: Heartbeat | undefined
  #welcome: Welcome | undefined
  #bye: Extract<ServerMessage, { verb: 'bye' }> | undefined
  /** Undefined until `auth` was answered. */
  #authResult: unknown
  #isLive = false
  #isClosed = false

  constructor(context: ConnectionContext) {
    this.#context = context
    this.#socket = new context.socketClass(context.url, [SUBPROTOCOL])
    const { token } = context
    let failure = ''
    this.#socket.binaryType = 'arraybuffer'
    this.#socket.onopen = () => token !== undefined && this.authenticate(token)
    this.#socket.onmessage = ({ data }: { data: string | ArrayBuffer }) => this.#receive(data)
    // Browsers give no reason. The `ws` package throws if nobody handles `error`. `close` always follows.
    this.#socket.onerror = ({ message = '' }: { message?: string }) => {
      failure = message
    }
    this.#socket.onclose = ({ code, reason }: { code: number; reason: string }) =>
      this.#end(this.#bye ?? { code }, reason || failure)
  }

  /** Whether messages may be sent: authenticated, and the server has not said `bye`. */
  get isLive(): boolean {
    return this.#isLive && !this.#bye
  }

  /** Bytes in the buffer of the socket. */
  get bufferedBytes(): number {
    return this.#socket.bufferedAmount
  }

  /** Passes an encoded message to the socket. The connection must be live. */
  send(frame: Frame, isAnswered = true): void {
    this.#socket.send(frame as never)
    this.#heartbeat?.sent(isAnswered)
  }

  /** Sends a token: the first one, or a new one before the present one expires. */
  authenticate(token: string): void {
    this.send(encodeAuth(AUTH_ID, token))
  }

  /** Closes the connection unless the server answers a ping within `timeoutMs`. */
  probe(timeoutMs: number): void {
    this.#heartbeat?.probe(timeoutMs)
  }

  /** Ends the connection at once, without a closing handshake: a dead network would not answer it. */
  close(closure: Closure): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#heartbeat?.stop()
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null
    // Apps may use only 1000 and 3000-4999 (RFC 6455 §7.4.2 and the WebSocket API).
    this.#socket.close(closure.code >= 4000 ? closure.code : 1000)
    this.#context.onClosed(closure)
  }

  /** Ends the connection with an error and its close code. */
  fail(error: WebMQError): void {
    const isRefused = error.code === 'E_CONNECT_FAILED'
    this.close({ code: closeCodeOf(error.code) ?? ABNORMAL_CLOSURE, reason: error.message, error, isRefused })
  }

  #end({ code, retryAfterMs }: Pick<Closure, 'code' | 'retryAfterMs'>, reason: string): void {
    const name = errorOfCloseCode(code) ?? (this.#welcome ? 'E_DISCONNECTED' : 'E_CONNECT_FAILED')
    const error = new WebMQError(name, { detail: `${reason || 'closed'} (${code})` })
    this.close({ code, reason, error, retryAfterMs, isRefused: name === 'E_CONNECT_FAILED' })
  }

  #receive(data: string | ArrayBuffer): void {
    this.#heartbeat?.alive()
    let message: CoreMessage | RawMessage
    try {
      message = decodeCoreMessage(typeof data === 'string' ? data : new Uint8Array(data))
    } catch (error) {
      this.#context.onError(error)
      return
    }
    if ('fields' in message) this.#context.onMessage(message)
    else if (message.verb === 'welcome') this.#greet(message)
    else if (message.verb === 'bye') this.#bye = message
    else if (message.verb === 'expiring') this.#context.onExpiring(message.inMs)
    else if ('id' in message && message.id === AUTH_ID) this.#authenticated(message)
    else this.#context.onMessage(message)
  }

  #greet(welcome: Welcome): void {
    this.#welcome = welcome
    this.#heartbeat = new Heartbeat(welcome.heartbeatMs, this.#context.heartbeatTimeoutMs, {
      sendPing: () => this.send('ping', false),
      onTimeout: () => this.fail(new WebMQError('E_HEARTBEAT_TIMEOUT')),
    })
    if (this.#context.token === undefined && welcome.auth === 'required') {
      const error = new WebMQError('E_UNAUTHENTICATED', { detail: 'set the option `token`' })
      this.close({ code: 1000, error, isFinal: true })
    } else this.#goLive()
  }

  #authenticated(answer: Extract<ServerMessage, { verb: 'ok' | 'error' }>): void {
    const error = answer.verb === 'error' ? errorOfServer(answer) : undefined
    if (!error || this.#welcome?.auth === 'none') {
      this.#authResult = (answer.verb === 'ok' && answer.result) || {}
      if (this.#isLive) this.#context.onRenewed()
      else this.#goLive()
    } else if (this.#isLive && closeCodeOf(error.code) === undefined && error.code !== 'E_FORBIDDEN') {
      this.#context.onRenewed(error)
    } else {
      // A token of another user (`E_FORBIDDEN`) needs a new connection.
      this.fail(error)
    }
  }

  #goLive(): void {
    const welcome = this.#welcome
    if (this.#isLive || !welcome || (this.#context.token !== undefined && !this.#authResult)) return
    this.#isLive = true
    const { session, node, version } = welcome
    const { userId } = (this.#authResult ?? {}) as { userId?: string }
    this.#context.onLive({ session, node, version, userId }, welcome)
  }
}
