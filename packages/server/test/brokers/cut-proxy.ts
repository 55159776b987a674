import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * A TCP proxy to a port of this machine that can be cut and mended. It runs in this process, fast enough for hundreds
 * of cuts.
 */
export class CutProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isCut = false

  constructor(targetPort: () => number, targetHost = '127.0.0.1') {
    this.#server = createServer((socket) => {
      if (this.#isCut) {
        socket.destroy()
        return
      }
      const onward = connect(targetPort(), targetHost)
      for (const [one, other] of [
        [socket, onward],
        [onward, socket],
      ] as const) {
        this.#sockets.add(one)
        // The `close` event follows.
        one.on('error', () => undefined)
        one.on('close', () => {
          this.#sockets.delete(one)
          other.destroy()
        })
        one.pipe(other)
      }
    })
  }

  async start(host = '127.0.0.1', port = 0): Promise<{ host: string; port: number }> {
    await once(this.#server.listen(port, host), 'listening')
    return { host, port: (this.#server.address() as AddressInfo).port }
  }

  /** Breaks all connections and refuses new ones. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  mend(): void {
    this.#isCut = false
  }

  stop(): void {
    this.cut()
    this.#server.close()
  }
}
