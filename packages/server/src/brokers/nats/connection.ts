import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls'
import { WebMQError } from 'webmq-client/protocol'
import { type NatsHost, textOf } from './address.js'
import type { NatsCredentials } from './credentials.js'
import { NatsParser, type NatsProtocolEvents } from './parser.js'

/** The part of a server's `INFO` that is used. */
export interface NatsServerInfo {
  readonly max_payload: number
  readonly tls_required?: boolean
  readonly tls_available?: boolean
  /** For what it wants signed. */
  readonly nonce?: string
  /** It knows headers. */
  readonly headers?: boolean
  /** It has streams itself; in a cluster others may. */
  readonly jetstream?: boolean
  /** Lame duck mode: it is going to stop. */
  readonly ldm?: boolean
}

/** What happens on a connection. */
export interface NatsConnectionEvents extends Pick<NatsProtocolEvents, 'message'> {
  pong(): void
  /** The server complains; it may close the connection after that. */
  error(text: string): void
  info(info: NatsServerInfo): void
  /** Once, last. */
  closed(cause: Error): void
}

/** How to make a {@link NatsConnection}. */
export interface NatsConnectionOptions {
  /** How the server's monitoring calls it. */
  readonly name: string
  readonly credentials: NatsCredentials
  readonly needsTls: boolean
  /** Whether headers come and may be sent, and a request that nobody takes is answered at once. */
  readonly hasHeaders: boolean
  /** Certificates. */
  readonly tls: TlsOptions
  /** For the attempt; without it, the signal alone ends it. */
  readonly timeoutMs?: number
}

/** Complaints after which the same credentials will not do next time. */
const REFUSALS = /authorization violation|authentication (?:expired|revoked)/i
/** Codes of Node and OpenSSL for a certificate that is not to be trusted. */
const CERTIFICATE_CODES = /CERT|UNABLE_TO_VERIFY/

const PONG = Buffer.from('PONG\r\n')

/**
 * A connection to one NATS server, as far as the protocol goes: greeting, TLS, credentials, pings of the server. Knows
 * nothing of keys and messages.
 */
export class NatsConnection {
  /** What the server has said of itself last. */
  info: NatsServerInfo = { max_payload: 0 }
  readonly #parser: NatsParser
  #socket: Socket
  #events: NatsConnectionEvents
  /** What the server has complained of last, or the socket: the reason for the end, when it comes. */
  #complaint: Error | undefined
  #isClosed = false

  /**
   * Connects and shows the credentials; resolves when the server has taken them.
   * @param signal Ends the attempt.
   * @throws {WebMQError} `E_BROKER_REFUSED` for credentials and certificates that will not do next time; anything else may pass.
   */
  static async open(host: NatsHost, options: NatsConnectionOptions, signal: AbortSignal): Promise<NatsConnection> {
    signal.throwIfAborted()
    const greeting = new Greeting()
    const connection = new NatsConnection(connect({ host: host.name, port: host.port, noDelay: true }), greeting)
    const abort = () => connection.destroy(new Error(`no answer of ${textOf(host)} in time`))
    signal.addEventListener('abort', abort, { once: true })
    const timer = options.timeoutMs === undefined ? undefined : setTimeout(abort, options.timeoutMs)
    try {
      const info = await greeting.greeted
      if (options.needsTls || info.tls_required === true) connection.#encrypt(host, options.tls)
      const { name, credentials, hasHeaders } = options
      connection.write(
        Buffer.from(`CONNECT ${JSON.stringify(connectFields(name, hasHeaders, credentials(info.nonce)))}\r\nPING\r\n`),
      )
      await greeting.accepted
      return connection
    } catch (cause) {
      connection.destroy()
      throw cause
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }

  private constructor(socket: Socket, events: NatsConnectionEvents) {
    this.#events = events
    this.#parser = new NatsParser({
      message: (bytes, bounds) => this.#events.message(bytes, bounds),
      line: (text) => this.#line(text),
    })
    this.#socket = this.#listenTo(socket)
  }

  /** From now on these are told. */
  handOver(events: NatsConnectionEvents): void {
    this.#events = events
  }

  /** Sends bytes in the order of the calls; they must not change any more. Without effect when closed. */
  write(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#socket.write(bytes)
  }

  /** What was written and still waits for the system to take it. */
  get waitingBytes(): number {
    return this.#socket.writableLength
  }

  /** What the system has taken so far. */
  get leftBytes(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength
  }

  /** Ends the connection behind what is written; `closed` is called when the server has, too. */
  end(): void {
    if (!this.#isClosed) this.#socket.end()
  }

  /** Ends the connection at once. */
  destroy(cause?: Error): void {
    this.#complaint ??= cause
    this.#socket.destroy()
  }

  #listenTo(socket: Socket): Socket {
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error) => {
      this.#complaint ??= isCertificateError(error)
        ? new WebMQError('E_BROKER_REFUSED', { detail: `its certificate: ${error.message}`, cause: error })
        : error
    })
    socket.on('close', () => {
      if (socket === this.#socket) this.#close()
    })
    return socket
  }

  #read(chunk: Buffer): void {
    try {
      this.#parser.push(chunk)
    } catch (cause) {
      this.destroy(cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#events.closed(this.#complaint ?? new Error('the server has closed the connection'))
  }

  #line(text: string): void {
    if (text === 'PONG') this.#events.pong()
    else if (text === 'PING') this.write(PONG)
    else if (text.startsWith('INFO ')) {
      this.info = infoOf(text.slice('INFO '.length))
      this.#events.info(this.info)
    } else if (text.startsWith('-ERR')) {
      const complaint = text.replace(/^-ERR\s*'?|'$/g, '')
      this.#complaint = REFUSALS.test(complaint)
        ? new WebMQError('E_BROKER_REFUSED', { detail: complaint })
        : new Error(complaint)
      this.#events.error(complaint)
    } else if (text !== '+OK' && text !== '') throw new Error(`this is not NATS: ${JSON.stringify(text.slice(0, 40))}`)
  }

  #encrypt(host: NatsHost, options: TlsOptions): void {
    const plain = this.#socket
    if (this.info.tls_required !== true && this.info.tls_available !== true)
      throw new WebMQError('E_BROKER_REFUSED', { detail: `${textOf(host)} has no TLS` })
    plain.removeAllListeners('data')
    const servername = isIP(host.name) === 0 ? { servername: host.name } : { host: host.name }
    this.#socket = this.#listenTo(connectTls({ ...options, ...servername, socket: plain }))
  }
}

function infoOf(json: string): NatsServerInfo {
  const info: unknown = JSON.parse(json)
  if (typeof info !== 'object' || info === null || !('max_payload' in info) || typeof info.max_payload !== 'number')
    throw new Error('this is not NATS: its INFO has no max_payload')
  return info as NatsServerInfo
}

/** `echo`: a node hears its own messages from the server, so that they come in the order in which all hear them. */
function connectFields(name: string, hasHeaders: boolean, credentials: object): object {
  return {
    verbose: false,
    pedantic: false,
    name,
    lang: 'webmq',
    version: '1',
    protocol: 1,
    echo: true,
    headers: hasHeaders,
    no_responders: hasHeaders,
    ...credentials,
  }
}

function isCertificateError(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && CERTIFICATE_CODES.test(error.code)
}

/** The steps of a connection that begins. */
class Greeting implements NatsConnectionEvents {
  /** The server has said what it is. */
  readonly greeted: Promise<NatsServerInfo>
  /** It has taken the credentials. */
  readonly accepted: Promise<void>
  readonly #ends: ((cause: Error) => void)[] = []

  constructor() {
    this.greeted = new Promise((resolve, reject) => {
      this.info = resolve
      this.#ends.push(reject)
    })
    this.accepted = new Promise((resolve, reject) => {
      this.pong = resolve
      this.#ends.push(reject)
    })
    // Nobody waits for the second when the first has failed.
    this.accepted.catch(() => undefined)
  }

  info: (info: NatsServerInfo) => void = () => undefined
  pong: () => void = () => undefined

  closed(cause: Error): void {
    for (const end of this.#ends) end(cause)
  }

  readonly message = nothing
  /** A complaint ends the connection, or it is none about the beginning. */
  readonly error = nothing
}

const nothing = () => undefined
