import { on } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import {
  type ClientMessage,
  decodeServerMessage,
  encodeClientMessage,
  type ServerMessage,
  SUBPROTOCOL,
  WebMQError,
} from 'webmq-client/protocol'
import { WebSocket } from 'ws'
import { type Answer, answerOf } from './health.js'
import { type DoctorTarget, inTime, tlsOptionsOf } from './target.js'

export interface Closure {
  readonly code: number
  readonly reason: string
}

/** A refused upgrade. A status of 101 has a `defect`. */
export interface RefusedUpgrade extends Answer {
  readonly defect?: string
}

type Of<V extends ServerMessage['verb']> = Extract<ServerMessage, { verb: V }>

/** A connection that sends nothing by itself but the answers to WebSocket pings. */
export class ProbeSession {
  readonly closed: Promise<Closure>
  readonly #socket: WebSocket
  readonly #timeoutMs: number
  readonly #messages: AsyncIterator<[data: Buffer, isBinary: boolean]>

  private constructor(socket: WebSocket, timeoutMs: number) {
    this.#socket = socket
    this.#timeoutMs = timeoutMs
    this.#messages = on(socket, 'message', { close: ['close'] }) as AsyncIterator<[Buffer, boolean]>
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
  }

  /**
   * Asks for a WebSocket, without trusting the certificate: its finding is another one.
   * @param origin As a page of this origin; absent: as a program.
   * @throws the error of a connection that fails without an answer.
   */
  static async open(target: DoctorTarget, origin?: string): Promise<ProbeSession | RefusedUpgrade> {
    const { url, timeoutMs } = target
    const socket = new WebSocket(url, [SUBPROTOCOL], {
      handshakeTimeout: timeoutMs,
      perMessageDeflate: false,
      maxPayload: 1024 * 1024,
      ...(origin === undefined ? {} : { origin }),
      ...tlsOptionsOf(target),
    })
    const session = new ProbeSession(socket, timeoutMs)
    return await new Promise((resolve, reject) => {
      let accepted: IncomingMessage | undefined
      socket.once('open', () => resolve(session))
      socket.once('upgrade', (response) => {
        accepted = response
      })
      socket.once('unexpected-response', (_request: ClientRequest, response: IncomingMessage) => {
        inTime(answerOf(response), timeoutMs)
          .then(resolve, reject)
          .finally(() => socket.terminate())
      })
      socket.on('error', (error) => {
        if (accepted === undefined) reject(error)
        else resolve({ status: 101, headers: accepted.headers, body: '', defect: error.message })
      })
    })
  }

  welcome(): Promise<Of<'welcome'>> {
    return this.#next('welcome')
  }

  /** Presents a token. @throws {WebMQError} The refusal of the server. */
  async authenticate(token: string): Promise<Of<'ok'>> {
    this.#send({ verb: 'auth', id: 'auth', token })
    const answer = await this.#next('ok', 'error')
    if (answer.verb === 'ok') return answer
    throw new WebMQError('E_TOKEN_INVALID', { message: `${answer.message} (${answer.code})` })
  }

  /** Time of a ping of the protocol and its answer. */
  async pingMs(): Promise<number> {
    const sentMs = performance.now()
    this.#send({ verb: 'ping' })
    await this.#next('pong')
    return performance.now() - sentMs
  }

  close(): void {
    this.#socket.terminate()
  }

  #send(message: ClientMessage): void {
    this.#socket.send(encodeClientMessage(message))
  }

  /** Waits for a message with one of these verbs, and forgets those before it. */
  #next<V extends ServerMessage['verb']>(...verbs: readonly V[]): Promise<Of<V>> {
    const isWanted = (message: ServerMessage): message is Of<V> => verbs.some((verb) => verb === message.verb)
    const arrival = async () => {
      for (;;) {
        const { done, value } = await this.#messages.next()
        if (done === true) {
          const { code, reason } = await this.closed
          throw new Error(`the connection was closed with ${code} ${reason}`)
        }
        const message = decoded(...value)
        if (message !== undefined && isWanted(message)) return message
      }
    }
    return inTime(arrival(), this.#timeoutMs)
  }
}

function decoded(data: Buffer, isBinary: boolean): ServerMessage | undefined {
  try {
    return decodeServerMessage(isBinary ? new Uint8Array(data) : data.toString())
  } catch (error) {
    // A verb of a later version [P-11.2], or of another protocol: then the welcome is missed.
    if (error instanceof WebMQError) return undefined
    throw error
  }
}
