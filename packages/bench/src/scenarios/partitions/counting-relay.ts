import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * A TCP relay between a node and its broker that counts what passes. The libraries of brokers do not tell the bytes of
 * their sockets, and the kernel tells those of a process only summed with other reads.
 */
export class CountingRelay {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #connectionCount = 0
  #toNodeBytes = 0
  #toBrokerBytes = 0

  /** @param target Address of the broker: `redis://127.0.0.1:6379`. */
  static async start(target: string): Promise<CountingRelay> {
    const relay = new CountingRelay(new URL(target))
    await once(relay.#server.listen(0, '127.0.0.1'), 'listening')
    return relay
  }

  private constructor({ hostname, port }: URL) {
    this.#server = createServer({ noDelay: true }, (near) => {
      const far = connect({ host: hostname, port: Number(port), noDelay: true })
      this.#connectionCount++
      near.once('close', () => this.#connectionCount--)
      near.on('data', (bytes) => {
        this.#toBrokerBytes += bytes.length
      })
      far.on('data', (bytes) => {
        this.#toNodeBytes += bytes.length
      })
      this.#join(near, far)
      this.#join(far, near)
    })
  }

  /** The address that leads to a broker through the relay. */
  addressOf(target: string): string {
    const { port } = this.#server.address() as AddressInfo
    const address = new URL(target)
    address.hostname = '127.0.0.1'
    address.port = String(port)
    return address.href
  }

  /** Bytes of the TCP streams so far, and open connections. */
  get counts(): { readonly toNodeBytes: number; readonly toBrokerBytes: number; readonly connectionCount: number } {
    return {
      toNodeBytes: this.#toNodeBytes,
      toBrokerBytes: this.#toBrokerBytes,
      connectionCount: this.#connectionCount,
    }
  }

  /** Breaks all connections. Idempotent. */
  stop(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from)
    // The `close` event follows, and ends the other side.
    from.on('error', () => undefined)
    from.once('close', () => {
      this.#sockets.delete(from)
      to.destroy()
    })
    from.pipe(to)
  }
}
