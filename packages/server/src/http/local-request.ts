import type { IncomingMessage } from 'node:http'
import { isLoopback } from '../identity/loopback.js'

/** Headers that proxies add. Such a request comes from the proxy's address, but from another client. */
const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const

/**
 * Whether a request comes from this machine and asks for a name of this machine. This excludes pages that point their own
 * name at this machine, and requests through proxies that add a forwarding header.
 */
export function isLocalRequest({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
  const { remoteAddress = '' } = socket
  if (!isLoopback(remoteAddress.replace(/^::ffff:/i, ''))) return false
  if (FORWARDING_HEADERS.some((name) => headers[name] !== undefined)) return false
  const host = /^(\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(headers.host ?? '')?.[1]
  return host !== undefined && isLoopback(host)
}
