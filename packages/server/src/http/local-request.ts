import type { IncomingMessage } from 'node:http'
import { unmapped } from '../identity/client-address.js'
import { isLoopback } from '../identity/loopback.js'

/** Headers that proxies add. Such a request comes from the proxy's address, but from another client. */
const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const

/**
 * Whether a request comes from this machine: from a loopback address, and not through a proxy that says so.
 * @param header Returns one header, by its name in lower case.
 */
export function isFromThisMachine(remoteAddress: string, header: (name: string) => unknown): boolean {
  return isLoopback(unmapped(remoteAddress)) && FORWARDING_HEADERS.every((name) => header(name) === undefined)
}

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
