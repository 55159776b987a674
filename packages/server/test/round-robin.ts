import { createServer, request as requestTo, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Hop-by-hop: each side keeps its own connection. */
const OWN = ['connection', 'keep-alive', 'transfer-encoding']

/** A balancer without stickiness: each request goes to the next node, whichever connection it comes by. */
export class RoundRobin {
  /** Requests of each node so far. */
  readonly counts: number[]
  readonly #ports: readonly number[]
  readonly #server: Server
  #next = 0

  private constructor(ports: readonly number[]) {
    this.#ports = ports
    this.counts = ports.map(() => 0)
    this.#server = createServer((request, response) => {
      const index = this.#next++ % this.#ports.length
      this.counts[index] = (this.counts[index] ?? 0) + 1
      const { method, url, headers } = request
      const own = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'connection'))
      const passed = requestTo({ host: '127.0.0.1', port: this.#ports[index], method, path: url, headers: own })
      passed.on('response', (answer) => {
        const given = Object.entries(answer.headers).filter(([name]) => !OWN.includes(name))
        response.writeHead(answer.statusCode ?? 502, Object.fromEntries(given))
        // An event stream tells its head at once.
        response.flushHeaders()
        answer.pipe(response)
        answer.on('error', () => response.destroy())
      })
      passed.on('error', () => {
        // A node may answer before the end of a body, which it then no longer takes.
        if (response.headersSent) request.unpipe(passed).resume()
        else response.destroy()
      })
      response.on('close', () => passed.destroy())
      request.pipe(passed)
    })
  }

  static async start(ports: readonly number[]): Promise<RoundRobin> {
    const balancer = new RoundRobin(ports)
    await new Promise<void>((resolve) => balancer.#server.listen(0, '127.0.0.1', resolve))
    return balancer
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
