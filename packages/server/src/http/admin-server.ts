import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../base/logger.js'
import { isLoopback } from '../identity/loopback.js'
import type { ResolvedOptions } from '../options/options.js'
import type { TransportAddress } from '../ports/transport.js'
import { type FrontendContext, HttpFrontend } from './frontend.js'

/** Few ask here, so it has places of its own, and few. An operator may follow a pattern for long. */
const LIMITS = { maxConnections: 128, reservedForLoopback: 16, maxPerAddress: 16, maxAgeMs: 3_600_000 }

/**
 * Serves `/health`, `/ready`, `/metrics` and the whole HTTP API on a port of its own, with sockets and limits of its own: clients cannot keep
 * probes out. Whoever reaches an address beyond loopback may read everything.
 */
export class AdminServer {
  readonly #host: string
  readonly #port: number
  readonly #logger: Logger
  readonly #http: HttpFrontend

  /** @param port 0 for a free one. */
  constructor(
    options: Pick<ResolvedOptions, 'adminHost' | 'metrics'>,
    port: number,
    context: Omit<FrontendContext, 'metricsAudience' | 'hasEndpoint'>,
  ) {
    this.#host = options.adminHost
    this.#port = port
    this.#logger = context.logger
    this.#http = new HttpFrontend({
      ...context,
      get metricsAudience() {
        return options.metrics === 'local' && !isLoopback(options.adminHost) ? 'all' : options.metrics
      },
      hasEndpoint: false,
      limits: LIMITS,
    })
  }

  /** @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`. */
  async listen(): Promise<TransportAddress> {
    const { server } = this.#http
    try {
      await once(server.listen(this.#port, this.#host), 'listening')
    } catch (cause) {
      const isTaken = cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
      const detail = `adminPort ${this.#port} of ${this.#host}`
      throw new WebMQError(isTaken ? 'E_ADDRESS_IN_USE' : 'E_ADDRESS_UNAVAILABLE', { detail, cause })
    }
    server.on('error', (err) => this.#logger.error({ err }, 'the admin port failed'))
    const { address, port } = server.address() as AddressInfo
    return { host: address, port }
  }

  /** Closes the port and its connections. */
  close(): void {
    this.#http.server.close()
    this.#http.close()
  }
}
