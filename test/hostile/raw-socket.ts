import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import type { Tally } from './tally.js'

/** The connection has ended; the tally has the reason. */
export class SocketEnded extends Error {
  override readonly name = 'SocketEnded'
}

/** Bytes that may wait in this process for a server that does not read. */
const MAX_WAITING_BYTES = 1_048_576
const CONNECT_TIMEOUT_MS = 5_000

/** A TCP connection to the server on this machine that counts its bytes, and never holds many of them. */
export class RawSocket {
  /** Resolves when the connection has ended, for whatever reason. */
  readonly ended: Promise<void>
  /** Receives what the server sends. */
  onData: (chunk: Buffer) => void = () => undefined
  readonly #socket: Socket
  readonly #tally: Tally
  #queue: Buffer[] = []
  #isFlushing = false
  #hasEnded = false
  #isOwnEnd = false
  #reason = 'end'
  #countedBytes = 0
  #receivedBytes = 0

  private constructor(socket: Socket, tally: Tally) {
    this.#socket = socket
    this.#tally = tally
    socket.on('data', (chunk: Buffer) => {
      tally.receivedBytes += chunk.length
      this.#receivedBytes += chunk.length
      this.onData(chunk)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#reason = error.code === 'ECONNRESET' || error.code === 'EPIPE' ? 'reset' : (error.code ?? error.message)
    })
    this.ended = new Promise((resolve) => {
      socket.once('close', () => {
        this.#hasEnded = true
        this.#countBytes()
        resolve()
      })
    })
  }

  /** @throws {SocketEnded} when the server does not accept the connection. */
  static async open(port: number, tally: Tally): Promise<RawSocket> {
    tally.connectCount++
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    const raw = new RawSocket(socket, tally)
    const timer = setTimeout(() => socket.destroy(new Error('connect timeout')), CONNECT_TIMEOUT_MS)
    const isOpen = await Promise.race([
      new Promise<boolean>((resolve) => socket.once('connect', () => resolve(true))),
      raw.ended.then(() => false),
    ])
    clearTimeout(timer)
    if (isOpen) return raw
    tally.close(raw.reason)
    throw new SocketEnded()
  }

  get receivedBytes(): number {
    return this.#receivedBytes
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Whether the server, or the way to it, ended the connection. */
  get wasEndedByServer(): boolean {
    return this.#hasEnded && !this.#isOwnEnd
  }

  /** Why the connection ended, if the server gave no close code. */
  get reason(): string {
    return this.#reason
  }

  /**
   * Writes bytes; those of one turn of the event loop together. Resolves when there is room for more.
   * @throws {SocketEnded} when the connection has ended.
   */
  async write(bytes: Buffer): Promise<void> {
    if (this.#hasEnded) throw new SocketEnded()
    this.#queue.push(bytes)
    if (!this.#isFlushing) {
      this.#isFlushing = true
      setImmediate(() => this.#flush())
    }
    if (this.#socket.writableLength < MAX_WAITING_BYTES) return
    await turn()
    if (this.#socket.writableLength < MAX_WAITING_BYTES || this.#hasEnded) return
    await Promise.race([new Promise<void>((resolve) => this.#socket.once('drain', resolve)), this.ended])
    if (this.#hasEnded) throw new SocketEnded()
  }

  /** Stops reading: the server's bytes stay in the buffers of the system, then in the server. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Ends the connection at once. @param isAbrupt By a reset, which leaves no port behind. */
  destroy(isAbrupt = true): void {
    if (!this.#hasEnded) this.#isOwnEnd = true
    if (isAbrupt && !this.#socket.connecting) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
  }

  /** Bytes that the system has taken so far, added to the tally once. */
  #countBytes(): void {
    const takenBytes = Math.max(0, this.#socket.bytesWritten - this.#socket.writableLength)
    this.#tally.sentBytes += takenBytes - this.#countedBytes
    this.#countedBytes = takenBytes
  }

  #flush(): void {
    this.#isFlushing = false
    const bytes = this.#queue.length === 1 ? this.#queue[0] : Buffer.concat(this.#queue)
    this.#queue = []
    if (this.#hasEnded || bytes === undefined || this.#socket.destroyed) return
    this.#socket.write(bytes)
  }
}
