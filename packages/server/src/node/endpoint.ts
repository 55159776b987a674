import { WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../base/logger.js'
import type { ResolvedOptions } from '../options/options.js'
import type { Transport } from '../ports/transport.js'
import { unixPathOf } from '../ports/unix-socket.js'

/** @throws {WebMQError} `E_OPTION_INVALID`: the transport cannot do what an option asks for. */
export function assertCapable({ name, capabilities }: Transport, options: ResolvedOptions, isAttached: boolean): void {
  const refuse = (detail: string) => {
    throw new WebMQError('E_OPTION_INVALID', { detail })
  }
  if (options.tls !== undefined && !capabilities.tls) refuse(`tls: the ${name} transport has no TLS`)
  if (unixPathOf(options.host) !== undefined && !isAttached && !capabilities.unixSocket)
    refuse(`host: the ${name} transport has no Unix sockets; use another one (--transport), or an address`)
  if (!options.proxyProtocol) return
  if (!capabilities.proxyProtocol) {
    refuse(`proxyProtocol: the ${name} transport does not read it; the native transport does (--transport native)`)
  }
  if (isAttached) refuse("proxyProtocol: it is for the server's own port, not for a server that it is attached to")
}

/** Fewer serve nobody: the descriptor limit is a mistake. */
const MIN_CONNECTIONS = 16

/**
 * The most connections that a transport holds, which it says in the log.
 * @throws {WebMQError} `E_TRANSPORT_FAILED`: the descriptor limit of the process leaves room for next to none.
 */
export function roomFor(
  transport: Transport,
  { maxConnections }: ResolvedOptions,
  logger: Pick<Logger, 'info' | 'warn'>,
): number {
  const { connectionLimit } = transport.stats()
  const isOwn = maxConnections > 0 && connectionLimit >= maxConnections
  const why = isOwn ? 'maxConnections' : 'the descriptor limit of the process (ulimit -n)'
  if (!isOwn && connectionLimit < Math.min(maxConnections || MIN_CONNECTIONS, MIN_CONNECTIONS)) {
    const detail = `${why} leaves room for ${connectionLimit} connections; raise it, for example to 65536`
    throw new WebMQError('E_TRANSPORT_FAILED', { detail })
  }
  const level = maxConnections > connectionLimit ? 'warn' : 'info'
  logger[level]({ connectionLimit, maxConnections }, `room for ${connectionLimit} connections, by ${why}`)
  return connectionLimit
}

/** A server on all addresses is reached from this machine as `localhost`; one on a Unix socket, as the library `ws` writes it. */
export function endpointUrl(host: string, port: number, { tls, path }: ResolvedOptions): string {
  const socket = unixPathOf(host)
  if (socket !== undefined) return `${tls === undefined ? 'ws' : 'wss'}+unix:${socket}:${path}`
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `${tls === undefined ? 'ws' : 'wss'}://${name}:${port}${path}`
}
