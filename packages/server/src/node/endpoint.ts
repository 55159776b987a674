import { WebMQError } from 'webmq-client/protocol'
import type { ResolvedOptions } from '../options/options.js'
import type { Transport } from '../ports/transport.js'

/** @throws {WebMQError} `E_OPTION_INVALID`: the transport cannot do what an option asks for. */
export function assertCapable({ name, capabilities }: Transport, options: ResolvedOptions, isAttached: boolean): void {
  const refuse = (detail: string) => {
    throw new WebMQError('E_OPTION_INVALID', { detail })
  }
  if (options.tls !== undefined && !capabilities.tls) refuse(`tls: the ${name} transport has no TLS`)
  if (!options.proxyProtocol) return
  if (!capabilities.proxyProtocol) {
    refuse(`proxyProtocol: the ${name} transport does not read it; the native transport does (--transport native)`)
  }
  if (isAttached) refuse("proxyProtocol: it is for the server's own port, not for a server that it is attached to")
}

/** A server on all addresses is reached from this machine as `localhost`. */
export function endpointUrl(host: string, port: number, { tls, path }: ResolvedOptions): string {
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `${tls === undefined ? 'ws' : 'wss'}://${name}:${port}${path}`
}
