import { once } from 'node:events'
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net'

/** What can be done to the connections that go through a relay. */
export type LinkFault = 'cut' | 'swallow' | 'stall'

/**
 * The network between one client and the nodes, in this process: it costs a millisecond where a proxy in a process of its own costs
 * a hundred, so that thousands of faults fit into minutes. Each connection goes to the node that is asked for when it is made.
 */
export class Relay {
  readonly #target: () => number | undefined
  readonly #server: Server
  readonly #pairs = new Set<readonly [near: Socket, far: Socket]>()
  readonly #halfOpen = new Set<Socket>()
  #port = 0

  private constructor(target: () => number | undefined) {
    this.#target = target
    this.#server = createServer({ noDelay: true }, (near) => this.#accept(near))
  }

  /** @param target Port of the node to connect to; `undefined`: there is none, and connections are reset. */
  static async start(target: () => number | undefined): Promise<Relay> {
    const relay = new Relay(target)
    relay.#server.listen(0, '127.0.0.1')
    await once(relay.#server, 'listening')
    relay.#port = (relay.#server.address() as AddressInfo).port
    return relay
  }

  get url(): string {
    return `ws://127.0.0.1:${this.#port}/ws`
  }

  /**
   * Does something to all connections that there are; new ones work. `cut`: reset. `swallow`: half-open, nothing comes through any
   * more and nothing is closed. `stall`: nothing is read from the node until {@link resume}.
   */
  inflict(fault: LinkFault): void {
    for (const [near, far] of this.#pairs) {
      if (fault === 'stall') far.pause()
      else if (fault === 'cut') this.#end(near, far)
      else {
        // Bytes in either direction vanish: what is read is thrown away.
        for (const socket of [near, far]) {
          socket.removeAllListeners('data')
          socket.removeAllListeners('drain')
          socket.resume()
        }
        this.#halfOpen.add(near)
      }
    }
  }

  /** Whether a client has not noticed yet that its connection is half-open. */
  get isHalfOpen(): boolean {
    return this.#halfOpen.size > 0
  }

  /** Ends every stall. */
  resume(): void {
    for (const [, far] of this.#pairs) far.resume()
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const [near, far] of this.#pairs) this.#end(near, far)
    await closed
  }

  #accept(near: Socket): void {
    const port = this.#target()
    if (port === undefined) {
      near.resetAndDestroy()
      return
    }
    const far = dial({ host: '127.0.0.1', port, noDelay: true })
    const pair = [near, far] as const
    this.#pairs.add(pair)
    forward(near, far)
    forward(far, near)
    for (const socket of pair) {
      // What has ended a connection is of no interest: both sides end.
      socket.on('error', () => this.#end(near, far))
      socket.on('close', () => this.#end(near, far))
    }
  }

  #end(near: Socket, far: Socket): void {
    near.destroy()
    far.destroy()
    this.#halfOpen.delete(near)
    for (const pair of this.#pairs) if (pair[0] === near) this.#pairs.delete(pair)
  }
}

function forward(from: Socket, to: Socket): void {
  from.on('data', (chunk) => {
    if (!to.write(chunk)) from.pause()
  })
  to.on('drain', () => from.resume())
}
