import type { IncomingMessage } from 'node:http'
import { isFromThisMachine } from '../identity/client-address.js'
import { isLoopback } from '../identity/loopback.js'

/**
 * Whether a request comes from this machine and asks for a name of this machine. This excludes pages that point their own
 * name at this machine, and requests through proxies that add a forwarding header.
 */
export function isLocalRequest({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
  return isFromThisMachine(socket.remoteAddress ?? '', (name) => headers[name]) && isLoopbackHost(headers.host)
}

/** Whether the value of a `Host` header is a name of this machine. */
export function isLoopbackHost(hostHeader: string | undefined): boolean {
  const host = /^(\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(hostHeader ?? '')?.[1]
  return host !== undefined && isLoopback(host)
}
