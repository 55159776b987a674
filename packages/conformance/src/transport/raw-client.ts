import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectSecurely, TLSSocket } from 'node:tls'
import { eventually } from './eventually.js'
import { OPCODE, type RawFrame, readClose, takeFrames } from './frames.js'

/** A request head that opens a connection, with headers that replace (or, as `undefined`, remove) its own. */
export function handshakeHead(path: string, headers: Readonly<Record<string, string | undefined>> = {}): string {
  const all = {
    Host: 'localhost',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  }
  const lines = Object.entries(all).filter(([, value]) => value !== undefined)
  return `GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

/** The head of a response. */
export interface ResponseHead {
  readonly status: number
  /** Names in lower case; of repeated ones the last. */
  readonly headers: ReadonlyMap<string, string>
}

/** A raw client: a TCP socket, with or without TLS, and the bytes read from it. */
export class RawClient {
  readonly socket: Socket
  /** Bytes after the response head that are not yet frames, or the body of the response. */
  #bytes: Buffer = Buffer.alloc(0)
  #head: ResponseHead | undefined
  #isWebSocket = false
  #isEnded = false
  readonly frames: RawFrame[] = []

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#receive(chunk))
    socket.on('close', () => {
      this.#isEnded = true
    })
    socket.on('end', () => {
      this.#isEnded = true
    })
    // A reset is one form of refusal: tests check `isEnded`.
    socket.on('error', () => {
      this.#isEnded = true
    })
  }

  /** A connected socket that has sent nothing. */
  static async connect(port: number, host = '127.0.0.1'): Promise<RawClient> {
    const socket = connect({ port, host, allowHalfOpen: true })
    const client = new RawClient(socket)
    await once(socket, 'connect')
    return client
  }

  /** A socket whose TLS handshake is complete, and which has sent nothing else. Rejects when the handshake fails. */
  static async connectSecurely(port: number, tls: ConnectionOptions = {}): Promise<RawClient> {
    const socket = connectSecurely({ port, host: '127.0.0.1', ...tls })
    const client = new RawClient(socket)
    // It rejects with an 'error'; a server that ends the connection before sends none.
    await Promise.race([once(socket, 'secureConnect'), closeOf(socket)])
    return client
  }

  /** A WebSocket: sends the handshake and waits for its 101. @param tls Present: over TLS. */
  static async open(
    port: number,
    path = '/',
    headers: Record<string, string> = {},
    tls?: ConnectionOptions,
  ): Promise<RawClient> {
    const client = tls === undefined ? await RawClient.connect(port) : await RawClient.connectSecurely(port, tls)
    client.write(handshakeHead(path, headers))
    const { status } = await client.response()
    if (status !== 101) throw new Error(`handshake was answered with ${status}: ${client.body}`)
    return client
  }

  /** The socket of {@link RawClient.connectSecurely}. */
  get tls(): TLSSocket {
    if (this.socket instanceof TLSSocket) return this.socket
    throw new Error('this client has no TLS')
  }

  /** Whether the server has ended or reset the connection. */
  get isEnded(): boolean {
    return this.#isEnded
  }

  /** The bytes after the head of an HTTP response. */
  get body(): string {
    return this.#bytes.toString()
  }

  /** Texts of the text frames so far. */
  get texts(): string[] {
    return this.frames.filter(({ opcode }) => opcode === OPCODE.text).map(({ payload }) => payload.toString())
  }

  /** Code and reason of the close frame, once received. */
  get close(): { code: number; reason: string } | undefined {
    const frame = this.frames.find(({ opcode }) => opcode === OPCODE.close)
    return frame && readClose(frame.payload)
  }

  write(bytes: Uint8Array | string): void {
    if (!this.socket.destroyed) this.socket.write(bytes)
  }

  async response(): Promise<ResponseHead> {
    return await eventually(() => {
      if (this.#head === undefined) throw new Error(`no response head; ended: ${this.#isEnded}`)
      return this.#head
    })
  }

  /** Sends a request after another one: its response is the next. */
  writeNext(bytes: string): void {
    this.#head = undefined
    this.#bytes = Buffer.alloc(0)
    this.write(bytes)
  }

  /** Waits for the server to end the connection. */
  async ended(timeoutMs?: number): Promise<void> {
    await eventually(() => {
      if (!this.#isEnded) throw new Error('the server keeps the connection open')
    }, timeoutMs)
  }

  /** Ends at once; with unread input, by a reset. */
  destroy(): void {
    this.socket.destroy()
  }

  #receive(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
    if (this.#head === undefined) this.#takeHead()
    if (!this.#isWebSocket) return
    const { frames, rest } = takeFrames(this.#bytes)
    this.frames.push(...frames)
    this.#bytes = rest
  }

  #takeHead(): void {
    const end = this.#bytes.indexOf('\r\n\r\n')
    if (end < 0) return
    const [statusLine = '', ...lines] = this.#bytes.subarray(0, end).toString('latin1').split('\r\n')
    const headers = new Map(lines.map((line) => [name(line), line.slice(line.indexOf(':') + 1).trim()]))
    const status = Number(statusLine.split(' ')[1])
    this.#bytes = this.#bytes.subarray(end + 4)
    // RFC 9110 §15.2: an interim response, such as 100, has another one behind it.
    if (status >= 100 && status < 200 && status !== 101) this.#takeHead()
    else {
      this.#head = { status, headers }
      this.#isWebSocket = status === 101
    }
  }
}

async function closeOf(socket: Socket): Promise<never> {
  await new Promise((resolve) => socket.once('close', resolve))
  throw new Error('the server has closed the connection')
}

function name(line: string): string {
  return line.slice(0, line.indexOf(':')).toLowerCase()
}
