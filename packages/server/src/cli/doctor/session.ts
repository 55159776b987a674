import {
  type ClientMessage,
  decodeServerMessage,
  encodeClientMessage,
  type ServerMessage,
  SUBPROTOCOL,
  WebMQError,
} from 'webmq-client/protocol'
import { WebSocket } from 'ws'
import type { DoctorTarget } from './target.js'
import { withTimeout } from './timing.js'
import { trustOf } from './tls.js'

/** How a connection ended. */
export interface Closure {
  readonly code: number
  readonly reason: string
  readonly afterMs: number
}

type Of<V extends ServerMessage['verb']> = Extract<ServerMessage, { verb: V }>

/** A connection that sends nothing by itself but the answers to WebSocket pings. */
export class ProbeSession {
  readonly closed: Promise<Closure>
  readonly #socket: WebSocket
  readonly #timeoutMs: number
  readonly #received: ServerMessage[] = []
  #changed: () => void = () => undefined

  private constructor(socket: WebSocket, timeoutMs: number) {
    this.#socket = socket
    this.#timeoutMs = timeoutMs
    const openedMs = performance.now()
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#receive(data, isBinary))
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => {
        resolve({ code, reason: reason.toString(), afterMs: performance.now() - openedMs })
      })
    })
  }

  /** Connects, without trusting the certificate: its finding is another one. */
  static async open(target: DoctorTarget): Promise<ProbeSession> {
    const { url, ca, timeoutMs } = target
    const socket = new WebSocket(url, [SUBPROTOCOL], {
      rejectUnauthorized: false,
      handshakeTimeout: timeoutMs,
      perMessageDeflate: false,
      maxPayload: 1024 * 1024,
      ...trustOf(ca),
    })
    const session = new ProbeSession(socket, timeoutMs)
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve)
      socket.on('error', reject)
    })
    return session
  }

  welcome(): Promise<Of<'welcome'>> {
    return this.#next((message): message is Of<'welcome'> => message.verb === 'welcome')
  }

  /** Presents a token. @throws {WebMQError} The refusal of the server. */
  async authenticate(token: string): Promise<Of<'ok'>> {
    this.#send({ verb: 'auth', id: 'auth', token })
    const answer = await this.#next(
      (message): message is Of<'ok'> | Of<'error'> => message.verb === 'ok' || message.verb === 'error',
    )
    if (answer.verb === 'ok') return answer
    throw new WebMQError('E_TOKEN_INVALID', { message: `${answer.message} (${answer.code})` })
  }

  /** Time of a ping of the protocol and its answer. */
  async pingMs(): Promise<number> {
    const sentMs = performance.now()
    this.#send({ verb: 'ping' })
    await this.#next((message): message is Of<'pong'> => message.verb === 'pong')
    return performance.now() - sentMs
  }

  close(): void {
    this.#socket.terminate()
  }

  #send(message: ClientMessage): void {
    this.#socket.send(encodeClientMessage(message))
  }

  #receive(data: Buffer, isBinary: boolean): void {
    try {
      this.#received.push(decodeServerMessage(isBinary ? new Uint8Array(data) : data.toString()))
    } catch (error) {
      // A verb of a later version [P-11.2], or of another protocol: then the welcome is missed.
      if (!(error instanceof WebMQError)) throw error
    }
    this.#changed()
  }

  /** Waits for a message, and forgets those before it. */
  async #next<M extends ServerMessage>(isWanted: (message: ServerMessage) => message is M): Promise<M> {
    const arrival = (async () => {
      for (;;) {
        const message = this.#received.shift()
        if (message !== undefined && isWanted(message)) return message
        if (message === undefined) {
          await new Promise<void>((resolve) => {
            this.#changed = resolve
          })
        }
      }
    })()
    const end = this.closed.then(({ code, reason }) => {
      throw new Error(`the connection was closed with ${code} ${reason}`)
    })
    return await withTimeout(Promise.race([arrival, end]), this.#timeoutMs)
  }
}
