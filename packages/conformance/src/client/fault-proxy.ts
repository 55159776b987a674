import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP proxy between the client and the server. It has one address for the whole of a case, and cuts what it is told to. */
export class FaultProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #target = 0
  #isHeld = false
  #isMuted = false
  /** What a handshake is answered with, instead of by the server. */
  #answer: string | undefined
  /** Lets clients speak again. */
  readonly #unmute = new Set<() => void>()

  private constructor() {
    this.#server = createServer((inner) => this.#accept(inner))
  }

  static async start(): Promise<FaultProxy> {
    const proxy = new FaultProxy()
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject)
      proxy.#server.listen(0, '127.0.0.1', resolve)
    })
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Connections go to this port from now on. */
  pointTo(port: number): void {
    this.#target = port
  }

  /** Ends all connections, without a word. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  hold(): void {
    this.#isHeld = true
    this.cut()
  }

  /** Ends all connections. Of new ones, only the first bytes of the client come through, which is its handshake. */
  mute(): void {
    this.#isMuted = true
    this.cut()
  }

  /** Ends all connections, and answers new ones as a proxy whose server is gone. */
  answer(status: number, body: string): void {
    const head = [`HTTP/1.1 ${status} No`, 'Content-Type: text/plain', `Content-Length: ${Buffer.byteLength(body)}`]
    if (status >= 300 && status < 400) head.push('Location: /login')
    this.#answer = `${head.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`
    this.cut()
  }

  release(): void {
    this.#isHeld = this.#isMuted = false
    this.#answer = undefined
    for (const unmute of this.#unmute) unmute()
    this.#unmute.clear()
  }

  async stop(): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(inner: Socket): void {
    if (this.#isHeld) {
      inner.destroy()
      return
    }
    const answer = this.#answer
    if (answer !== undefined) {
      inner.on('error', () => inner.destroy()).once('data', () => inner.end(answer))
      return
    }
    const outer = connect(this.#target, '127.0.0.1')
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      this.#sockets.add(from)
      // Either end may break at any time: that is what it is for.
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
    }
    outer.pipe(inner)
    if (!this.#isMuted) {
      inner.pipe(outer)
      return
    }
    inner.once('data', (handshake) => {
      outer.write(handshake)
      inner.pause()
      this.#unmute.add(() => inner.pipe(outer))
    })
  }
}
