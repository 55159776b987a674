import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A direction of a link; `upstream` is towards the server. */
export type Stream = 'upstream' | 'downstream'

/** What a link does wrong. */
export type LinkFault =
  /** All connections are reset, and new ones too. */
  | { readonly fault: 'cut' }
  /** Bytes and closes wait, and are passed on when it is healed. Senders feel it once their buffers are full. */
  | { readonly fault: 'stall'; readonly streams: readonly Stream[] }
  /** Bytes are lost, and closes are not told. What has lost bytes is reset when it is healed. */
  | { readonly fault: 'swallow'; readonly streams: readonly Stream[] }
  | { readonly fault: 'latency'; readonly delayMs: number }
  | { readonly fault: 'throttle'; readonly bytesPerSecond: number }

const HOST = '127.0.0.1'
/** Two buffers of the kernel stand beside this one; a link that is stalled holds no more. */
const MAX_HELD_BYTES = 64 * 1_024

/**
 * A TCP proxy on loopback with a fault to switch on, in this process. toxiproxy hangs when a link is healed that was
 * stalled while its far end closed (2.12), which is what nodes that are stopped do.
 */
export class Link {
  readonly port: number
  readonly #server: Server
  readonly #pipes = new Set<Pipe>()
  #fault: LinkFault | undefined

  private constructor(server: Server, choose: () => Target) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    server.on('connection', (near) => this.#connect(near, choose()))
  }

  /** @param target A function is asked for each connection, as a load balancer is. */
  static async start(target: Target | (() => Target)): Promise<Link> {
    // Allowed to send after the other side has ended: each direction closes for itself.
    const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, HOST)
    await once(server, 'listening')
    return new Link(server, typeof target === 'function' ? target : () => target)
  }

  break(fault: LinkFault): void {
    this.heal()
    this.#fault = fault
    for (const pipe of [...this.#pipes]) pipe.setFault(fault)
  }

  heal(): void {
    this.#fault = undefined
    for (const pipe of [...this.#pipes]) pipe.setFault(undefined)
  }

  stop(): void {
    this.#server.close()
    for (const pipe of [...this.#pipes]) pipe.reset()
  }

  #connect(near: Socket, target: Target): void {
    // Its `close` follows.
    near.on('error', () => undefined)
    const { port, host = HOST, ended } = typeof target === 'number' ? { port: target } : target
    if (ended !== undefined) near.once('close', ended)
    if (this.#fault?.fault === 'cut') {
      near.resetAndDestroy()
      return
    }
    const far = connect({ port, host, allowHalfOpen: true, noDelay: true })
    far.on('error', () => undefined)
    const pipes = [new Pipe(near, far, 'upstream'), new Pipe(far, near, 'downstream')]
    for (const pipe of pipes) {
      pipe.setFault(this.#fault)
      this.#pipes.add(pipe)
    }
    let openCount = 2
    const closed = () => {
      if (--openCount === 0) for (const pipe of pipes) this.#pipes.delete(pipe)
    }
    for (const socket of [near, far]) socket.once('close', closed)
  }
}

/** The port of the server on this machine, or on `host`; `ended` is called when the client's connection has ended. */
export type Target = number | { readonly port: number; readonly host?: string; readonly ended?: () => void }

type Ending = 'end' | 'reset' | 'destroy'

/** One direction of one connection. */
class Pipe {
  readonly #from: Socket
  readonly #to: Socket
  readonly #stream: Stream
  readonly #queue: { readonly what: Buffer | Ending; readonly readAtMs: number }[] = []
  #fault: LinkFault | undefined
  #hasLost = false
  #isPumping = false
  #heldBytes = 0
  #wake: (() => void) | undefined

  constructor(from: Socket, to: Socket, stream: Stream) {
    this.#from = from
    this.#to = to
    this.#stream = stream
    from.on('data', (bytes) => this.#push(bytes))
    from.once('end', () => this.#push('end'))
    from.once('close', (hadError) => this.#push(hadError ? 'reset' : 'destroy'))
    for (const event of ['drain', 'close']) to.on(event, () => this.#wake?.())
  }

  setFault(fault: LinkFault | undefined): void {
    const isDirected = fault !== undefined && 'streams' in fault
    this.#fault = isDirected && !fault.streams.includes(this.#stream) ? undefined : fault
    if (fault?.fault === 'cut' || (fault === undefined && this.#hasLost)) this.reset()
    this.#wake?.()
  }

  reset(): void {
    this.#from.resetAndDestroy()
    this.#to.resetAndDestroy()
  }

  #push(what: Buffer | Ending): void {
    this.#queue.push({ what, readAtMs: performance.now() })
    if (typeof what !== 'string') this.#hold(what.length)
    if (!this.#isPumping) void this.#pump()
  }

  #hold(bytes: number): void {
    this.#heldBytes += bytes
    if (this.#heldBytes >= MAX_HELD_BYTES) this.#from.pause()
    else this.#from.resume()
  }

  /** Passes on one thing after the other. Never rejects. */
  async #pump(): Promise<void> {
    this.#isPumping = true
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const { what, readAtMs } = next
      while (this.#mustWait(what)) await this.#woken()
      if (typeof what === 'string') {
        this.#finish(what)
        continue
      }
      if (this.#fault?.fault === 'swallow') this.#hasLost = true
      else await this.#write(what, readAtMs)
      this.#hold(-what.length)
    }
    this.#isPumping = false
  }

  #mustWait(what: Buffer | Ending): boolean {
    if (this.#to.destroyed) return false
    return this.#fault?.fault === 'stall' || (this.#fault?.fault === 'swallow' && typeof what === 'string')
  }

  #finish(how: Ending): void {
    if (how === 'end') this.#to.end()
    else if (how === 'reset') this.#to.resetAndDestroy()
    // After both ends have ended there is nothing left to do.
    else if (!this.#to.writableEnded) this.#to.destroy()
  }

  async #write(bytes: Buffer, readAtMs: number): Promise<void> {
    const fault = this.#fault
    if (fault?.fault === 'latency') await sleep(Math.max(0, readAtMs + fault.delayMs - performance.now()))
    if (fault?.fault === 'throttle') await sleep((bytes.length * 1_000) / fault.bytesPerSecond)
    if (!this.#to.writable) return
    this.#to.write(bytes)
    while (this.#to.writableNeedDrain && !this.#to.destroyed) await this.#woken()
  }

  async #woken(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }
}
