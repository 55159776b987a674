import { channel } from 'node:diagnostics_channel'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { ByteStream } from './byte-stream.js'
import { Network } from './network.js'
import type { WireBroker, WireSession } from './wire/broker.js'

/** As long as a peer's kernel asks before it gives up a connection of which it hears nothing. */
const KEEPALIVE_MS = 4_000
const OPENED = channel('net.client.socket')

/** A broker as sockets reach it. */
export interface BrokerPort {
  readonly broker: WireBroker
  isUp: boolean
}

export type SocketFault = 'reset' | 'end' | 'half-open' | 'stall' | 'hold'

/** A socket of the client side, as the libraries of brokers use one, to a broker of this process. */
export class TcpSocket extends Duplex {
  connecting = true
  readonly remoteAddress: string
  readonly remotePort: number
  readonly remoteFamily = 'IPv4'
  readonly localAddress = '127.0.0.1'
  readonly localPort = 40_000
  bytesRead = 0
  bytesWritten = 0
  readonly #network = Network.current
  readonly #up = new ByteStream((bytes) => this.#session?.receive(bytes))
  readonly #down = new ByteStream((bytes) => this.#receive(bytes))
  #session: WireSession | undefined
  /** Of the far side. */
  #isClosed = false
  #waiting: (() => void) | undefined
  #unread: Buffer[] = []
  #isWanted = false
  #timeoutMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(host: string, port: number) {
    super({ allowHalfOpen: false, emitClose: true, autoDestroy: true })
    this.remoteAddress = host
    this.remotePort = port
    this.#network.tcp.add(this)
    OPENED.publish({ socket: this as unknown as Socket })
    this.#up.later(() => this.#open())
  }

  /** What a fault of the network does to the connection. `hold`: what is sent waits, and what comes arrives. */
  suffer(fault: SocketFault, forMs = 0): void {
    if (fault === 'stall' || fault === 'hold') {
      this.#up.stall(forMs)
      if (fault === 'stall') this.#down.stall(forMs)
    } else if (fault === 'half-open') {
      this.#up.isSwallowing = true
      this.#down.isSwallowing = true
    } else {
      this.#closeFar()
      if (fault === 'reset') this.#down.later(() => this.#fail('ECONNRESET', 'read ECONNRESET'))
      else this.#down.later(() => this.#ended())
    }
  }

  get pending(): boolean {
    return this.connecting
  }

  get readyState(): string {
    return this.connecting ? 'opening' : this.destroyed ? 'closed' : 'open'
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  address() {
    return { address: this.localAddress, family: 'IPv4', port: this.localPort }
  }

  setTimeout(timeoutMs: number, listener?: () => void): this {
    clearTimeout(this.#timer)
    this.#timeoutMs = timeoutMs
    if (timeoutMs === 0) {
      if (listener !== undefined) this.removeListener('timeout', listener)
      return this
    }
    if (listener !== undefined) this.once('timeout', listener)
    this.#active()
    return this
  }

  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  resetAndDestroy(): this {
    return this.destroy()
  }

  override _write(chunk: Buffer, _: BufferEncoding, taken: (error?: Error) => void): void {
    this.#transmit(chunk, taken)
  }

  override _writev(chunks: { chunk: Buffer }[], taken: (error?: Error) => void): void {
    this.#transmit(Buffer.concat(chunks.map(({ chunk }) => chunk)), taken)
  }

  override _read(): void {
    this.#isWanted = true
    while (this.#isWanted && this.#unread.length > 0) this.#push(this.#unread.shift() ?? null)
  }

  override _final(done: (error?: Error) => void): void {
    if (this.connecting) {
      this.#waiting = () => this._final(done)
      return
    }
    this.#up.later(() => {
      if (this.#up.isSwallowing) return
      this.#closeFar()
      this.#down.later(() => this.#ended())
    })
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.connecting = false
    this.#network.tcp.delete(this)
    // A peer that hears nothing gives up after a while.
    this.#up.later(() => this.#closeFar(), this.#up.isSwallowing ? KEEPALIVE_MS : 0)
    done(error)
  }

  #open(): void {
    if (this.destroyed) return
    const port = this.#network.brokers.get(this.remotePort)
    if (port === undefined || !port.isUp || this.#network.deadHosts.has(this.remoteAddress)) {
      this.#fail('ECONNREFUSED', `connect ECONNREFUSED ${this.remoteAddress}:${this.remotePort}`)
      return
    }
    this.#session = port.broker.connect({
      send: (bytes) => this.#down.send(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
      end: (how) => this.suffer(how),
    })
    this.connecting = false
    this.emit('connect')
    this.emit('ready')
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.()
  }

  #transmit(bytes: Buffer, taken: (error?: Error) => void): void {
    if (this.connecting) {
      this.#waiting = () => this.#transmit(bytes, taken)
      return
    }
    this.bytesWritten += bytes.length
    this.#active()
    // A copy: the library may use its buffer again.
    const copy = Buffer.from(bytes)
    this.#network.note('>', copy)
    this.#up.send(copy, taken)
  }

  #receive(bytes: Buffer): void {
    if (this.destroyed) return
    this.#network.note('<', bytes)
    this.bytesRead += bytes.length
    this.#active()
    if (this.#isWanted) this.#push(bytes)
    else this.#unread.push(bytes)
  }

  #push(bytes: Buffer | null): void {
    if (!this.push(bytes)) this.#isWanted = false
  }

  #ended(): void {
    if (this.destroyed || this.#down.isSwallowing) return
    // Behind what was not read yet.
    for (const bytes of this.#unread.splice(0)) this.push(bytes)
    this.push(null)
    this.resume()
  }

  #fail(code: string, text: string): void {
    if (this.destroyed || this.#down.isSwallowing) return
    this.destroy(Object.assign(new Error(text), { code, syscall: text.split(' ')[0] }))
  }

  #closeFar(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#session?.closed()
    this.#session = undefined
  }

  #active(): void {
    if (this.#timeoutMs === 0 || this.destroyed) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.emit('timeout'), this.#timeoutMs)
  }
}

const net: typeof import('node:net') = createRequire(import.meta.url)('node:net')
const REAL = { connect: net.connect, createConnection: net.createConnection }

/** Sockets of this process are {@link TcpSocket}s until the returned function is called. */
export function installSockets(): () => void {
  const connect = (...args: unknown[]) => {
    const [first, second] = args
    const listener = args.find((each) => typeof each === 'function') as (() => void) | undefined
    const options =
      typeof first === 'object' && first !== null ? (first as { host?: string; port?: number }) : undefined
    const host = options?.host ?? (typeof second === 'string' ? second : '127.0.0.1')
    const socket = new TcpSocket(host, Number(options?.port ?? first))
    if (listener !== undefined) socket.once('connect', listener)
    return socket
  }
  Object.assign(net, { connect, createConnection: connect })
  syncBuiltinESMExports()
  return () => {
    Object.assign(net, REAL)
    syncBuiltinESMExports()
  }
}
