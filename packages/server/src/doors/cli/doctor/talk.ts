import { on } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import {
  type ClientMessage,
  closeCodeOf,
  decodeServerMessage,
  ERRORS,
  type ErrorCode,
  encodeClientMessage,
  errorOfCloseCode,
  type ServerMessage,
  SUBPROTOCOL,
  WebMQError,
} from 'webmq-client/protocol'
import { WebSocket } from 'ws'
import { within } from '../../../kernel/base/within.js'
import { type Answer, answerOf } from './health.js'
import {
  type DoctorTarget,
  elapsedMs,
  type Finding,
  failure,
  inTime,
  ok,
  skipped,
  tlsOptionsOf,
  warning,
  whyOf,
} from './target.js'

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

const PING_COUNT = 5
const SLOW_MS = 300

/**
 * Talks to the server over one connection, and closes it: token, round trip, idle time.
 *
 * @param isPrivate Whether nobody else can read what is sent. A token is not sent otherwise.
 */
export async function* checkTalk(
  { token, idleMs }: DoctorTarget,
  session: ProbeSession,
  isPrivate: boolean,
): AsyncGenerator<Finding> {
  try {
    const { auth, heartbeatMs, node, version } = await session.welcome()
    yield ok('welcome', `node ${node}, version ${version}`)
    let isAdmitted = auth !== 'required'
    const identity = await checkToken(token, session, auth, isPrivate)
    isAdmitted ||= identity.status === 'ok'
    yield identity
    yield await checkRoundTrip(session)
    if (idleMs !== undefined) yield await checkIdle(session, idleMs, heartbeatMs, isAdmitted)
  } catch (error) {
    yield failure('welcome', `the server does not talk (${whyOf(error)})`, 'Look at the log of the server.')
  } finally {
    session.close()
  }
}

async function checkToken(
  token: string | undefined,
  session: ProbeSession,
  auth: 'none' | 'required' | 'done',
  isPrivate: boolean,
): Promise<Finding> {
  if (token === undefined) {
    if (auth !== 'required') return skipped('identity', 'the server wants no token')
    return warning('identity', 'the server wants a token, and none was given', 'Give one with --token to check it.')
  }
  if (auth === 'none') {
    return warning('identity', 'the server ignores tokens', 'It has no key: set --jwt-secret-file or --jwks.')
  }
  if (!isPrivate) {
    return warning('identity', 'the token was not sent, as others could read it', 'Use wss:// and a good certificate.')
  }
  try {
    const { result } = await session.authenticate(token)
    const { userId } = (result ?? {}) as { userId?: unknown }
    return ok('identity', `the server accepts the token${userId === undefined ? '' : `, user ${String(userId)}`}`)
  } catch (error) {
    if (!(error instanceof WebMQError)) throw error
    const advice = 'Compare key, issuer and audience with those of the server: webmq-server token inspect.'
    return failure('identity', `the server refuses the token: ${error.message}`, advice)
  }
}

async function checkRoundTrip(session: ProbeSession): Promise<Finding> {
  const times: number[] = []
  for (let count = 0; count < PING_COUNT; count++) times.push(await session.pingMs())
  times.sort((a, b) => a - b)
  const [min, median, max] = [times[0], times[PING_COUNT >> 1], times.at(-1)].map((ms = 0) => Math.round(ms * 10) / 10)
  const text = `${median} ms (${min} to ${max} ms, ${PING_COUNT} pings)`
  if ((median ?? 0) < SLOW_MS) return ok('round trip', text)
  return warning('round trip', text, 'Put the server nearer to its users, or look what keeps its event loop busy.')
}

/** Keeps the connection idle. Pings of the server are answered, as every client does. */
async function checkIdle(
  session: ProbeSession,
  idleMs: number,
  heartbeatMs: number,
  isAdmitted: boolean,
): Promise<Finding> {
  if (!isAdmitted) return skipped('idle', 'a connection without its token does not stay')
  const startedMs = performance.now()
  if (!(await within(session.closed, idleMs))) return ok('idle', `the connection stayed for ${idleMs / 1000} s`)
  const closure = await session.closed
  return explainCut(closure, elapsedMs(startedMs), heartbeatMs)
}

/** Who has ended an idle connection: servers send a close frame, and things between only cut. */
function explainCut({ code, reason }: Closure, afterMs: number, heartbeatMs: number): Finding {
  const after = `after ${afterMs / 1000} s of silence`
  const name: ErrorCode | undefined = errorOfCloseCode(code)
  if (name !== undefined && closeCodeOf(name) === code) {
    const text = `the server closed the connection ${after}: ${code} ${name}, ${ERRORS[name].message}`
    return failure('idle', text, `webmq-server explain ${name} says more.`)
  }
  const who =
    code === 1006 ? 'something between cut the connection' : `something between closed it with ${code} ${reason}`
  const advice =
    afterMs < heartbeatMs
      ? `Raise the idle time of the proxy or balancer above ${heartbeatMs / 1000} s, or lower --ping-interval below ${afterMs / 1000} s.`
      : 'Look at the longest connection time of the proxy or balancer.'
  return failure('idle', `${who} ${after}`, advice)
}
