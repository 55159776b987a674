import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebMQError } from 'webmq-client/protocol'
import { isLoopback } from '../identity/loopback.js'
import type { TransportAddress } from '../ports/transport.js'
import { type HttpContext, HttpFrontend } from './frontend.js'

/** What an {@link AdminServer} works with. */
export interface AdminContext extends Omit<HttpContext, 'hasEndpoint' | 'demo'> {
  readonly host: string
  /** 0 for a free one. */
  readonly port: number
}

/** Few ask here, so it has places of its own, and few. An operator may follow a pattern for long. */
const LIMITS = { maxConnections: 128, reservedForLoopback: 16, maxPerAddress: 16, maxAgeMs: 3_600_000 }

/**
 * Serves `/health`, `/ready`, `/metrics` and the whole HTTP API on a port of its own, with sockets and limits of its own: clients cannot keep
 * probes out. Whoever reaches an address beyond loopback may read everything.
 */
export class AdminServer {
  readonly #context: AdminContext
  readonly #http: HttpFrontend

  constructor(context: AdminContext) {
    this.#context = context
    this.#http = new HttpFrontend({
      ...context,
      get metricsAudience() {
        const { host, metricsAudience } = context
        return metricsAudience === 'local' && !isLoopback(host) ? 'all' : metricsAudience
      },
      hasEndpoint: false,
      limits: { ...LIMITS, ...context.limits },
    })
  }

  /** @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`. */
  async listen(): Promise<TransportAddress> {
    const { host, port, logger } = this.#context
    const { server } = this.#http
    try {
      await once(server.listen(port, host), 'listening')
    } catch (cause) {
      const isTaken = cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
      const detail = `adminPort ${port} of ${host}`
      throw new WebMQError(isTaken ? 'E_ADDRESS_IN_USE' : 'E_ADDRESS_UNAVAILABLE', { detail, cause })
    }
    server.on('error', (err) => logger.error({ err }, 'the admin port failed'))
    const { address, port: bound } = server.address() as AddressInfo
    return { host: address, port: bound }
  }

  /** Closes the port and its connections. */
  close(): void {
    this.#http.server.close()
    this.#http.close()
  }
}
