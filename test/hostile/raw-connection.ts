import { randomBytes } from 'node:crypto'
import { closePayload, FrameReader, type FrameShape, frameOf, OPCODE, type ServerFrame } from './frames.js'
import { RawSocket, SocketEnded } from './raw-socket.js'
import type { Tally } from './tally.js'

/** How a WebSocket connection is made. */
export interface OpenOptions {
  /** Sent as `Authorization: Bearer …`. */
  readonly token?: string
  /** Offers permessage-deflate. */
  readonly isCompressed?: boolean
  /** Leaves pings of the server and its close frame without an answer. */
  readonly isMute?: boolean
  /** Receives the header of each message, the start of its body included. */
  readonly onMessage?: (header: string) => void
}

const HANDSHAKE_TIMEOUT_MS = 10_000
/** A head that does not end within this many bytes is none of this server's. */
const MAX_HEAD_CHARS = 16_384

/** A WebSocket connection without the manners of a library: it sends any bytes, and counts what comes back. */
export class RawConnection {
  /** Resolves when the connection has ended, for whatever reason. */
  readonly ended: Promise<void>
  readonly #socket: RawSocket
  readonly #tally: Tally
  readonly #options: OpenOptions
  readonly #reader = new FrameReader((frame) => this.#receive(frame))
  #closeCode: number | undefined
  #hasUpgraded = false

  private constructor(socket: RawSocket, tally: Tally, options: OpenOptions) {
    this.#socket = socket
    this.#tally = tally
    this.#options = options
    this.ended = socket.ended.then(() => {
      if (this.#hasUpgraded && socket.wasEndedByServer) tally.close(String(this.#closeCode ?? socket.reason))
    })
  }

  /** @throws {SocketEnded} when the server refuses; the tally has its status. */
  static async open(port: number, tally: Tally, options: OpenOptions = {}): Promise<RawConnection> {
    const socket = await RawSocket.open(port, tally)
    const connection = new RawConnection(socket, tally, options)
    const status = connection.#readStatus()
    await socket.write(Buffer.from(upgradeRequest(port, options)))
    const timer = setTimeout(() => socket.destroy(), HANDSHAKE_TIMEOUT_MS)
    const answer = await Promise.race([status, socket.ended])
    clearTimeout(timer)
    tally.status(answer ?? `none (${socket.reason})`)
    if (answer === '101') return connection
    socket.destroy()
    throw new SocketEnded()
  }

  get receivedBytes(): number {
    return this.#socket.receivedBytes
  }

  get hasEnded(): boolean {
    return this.#socket.hasEnded
  }

  /** The close code of the server; `undefined` when it has sent none. */
  get closeCode(): number | undefined {
    return this.#closeCode
  }

  /** Sends one message. @throws {SocketEnded} when the connection has ended. */
  async send(message: string | Buffer): Promise<void> {
    await this.#socket.write(frameOf(message, typeof message === 'string' ? {} : { opcode: OPCODE.binary }))
  }

  /** Sends a frame of any shape. @throws {SocketEnded} when the connection has ended. */
  async sendFrame(payload: string | Buffer, shape: FrameShape): Promise<void> {
    await this.#socket.write(frameOf(payload, shape))
  }

  /** Sends any bytes. @throws {SocketEnded} when the connection has ended. */
  async sendBytes(bytes: Buffer): Promise<void> {
    await this.#socket.write(bytes)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Ends the connection without a close frame. */
  destroy(): void {
    this.#socket.destroy()
  }

  /** Resolves to the status once the head of the response has come; frames may follow it in the same bytes. */
  #readStatus(): Promise<string> {
    let head = Buffer.alloc(0)
    return new Promise((resolve) => {
      this.#socket.onData = (chunk) => {
        head = Buffer.concat([head, chunk])
        const end = head.indexOf('\r\n\r\n')
        if (end === -1 && head.length < MAX_HEAD_CHARS) return
        const status = /^HTTP\/1\.1 (\d{3})/.exec(head.toString('latin1', 0, 64))?.[1] ?? 'not HTTP'
        this.#hasUpgraded = status === '101'
        this.#socket.onData = (bytes) => this.#reader.read(bytes)
        if (this.#hasUpgraded) this.#reader.read(head.subarray(end + 4))
        resolve(status)
      }
    })
  }

  #receive({ opcode, isCompressed, head }: ServerFrame): void {
    const { isMute = false, onMessage } = this.#options
    switch (opcode) {
      case OPCODE.text:
      case OPCODE.binary:
        if (isCompressed) this.#tally.verb('compressed')
        else this.#count(head.toString('latin1'), onMessage)
        return
      case OPCODE.ping:
        if (!isMute) this.#answer(head, OPCODE.pong)
        return
      case OPCODE.close:
        this.#closeCode ??= head.length >= 2 ? head.readUInt16BE(0) : 1005
        if (!isMute) this.#answer(closePayload(1000), OPCODE.close)
        return
      default:
        this.#tally.verb(opcode === OPCODE.pong ? 'ws-pong' : 'other')
    }
  }

  #count(header: string, onMessage: ((header: string) => void) | undefined): void {
    const verb = /^[a-z]+/.exec(header)?.[0] ?? 'other'
    this.#tally.verb(verb)
    if (verb === 'error') this.#tally.error(/^error \S+ (E_[A-Z_]+)/.exec(header)?.[1] ?? 'unreadable')
    onMessage?.(header)
  }

  #answer(payload: Buffer, opcode: number): void {
    this.#socket.write(frameOf(payload, { opcode })).catch((error: unknown) => {
      if (!(error instanceof SocketEnded)) throw error // Ended meanwhile: nobody waits for the answer.
    })
  }
}

/** The head of a handshake. */
export function upgradeRequest(port: number, { token, isCompressed = false }: OpenOptions = {}): string {
  return [
    'GET /ws HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Protocol: webmq.v1',
    ...(isCompressed
      ? ['Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover; server_no_context_takeover']
      : []),
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    '',
    '',
  ].join('\r\n')
}
