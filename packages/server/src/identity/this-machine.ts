import { isLoopbackAddress } from './client-address.js'
import { isLoopback } from './loopback.js'

/** Where a request comes from, as the server sees it. */
export interface RequestSource {
  /** Of the peer. */
  readonly remoteAddress: string
  /** Returns one header, by its name in lower case. */
  readonly header: (name: string) => unknown
  /** The client that a trusted proxy names; default: none does. */
  readonly clientAddress?: string | undefined
}

/** Headers that proxies add. Such a request comes from the proxy's address, but from another client. */
const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const

/**
 * Whether a request comes from this machine, for every door of the server:
 *
 * - The peer has a loopback address or comes over a Unix socket; and the client that a trusted proxy names has a loopback address.
 * - No other proxy has passed it on: those that say so send a forwarding header.
 * - `Host` names this machine. A page whose own name points at this machine (DNS rebinding) sends that name, and needs no
 *   `Origin` to read an event stream.
 * - No page of another site has sent it without `Origin`, such as an image: `Sec-Fetch-Site`. Links count as the user's.
 */
export function isFromThisMachine({ remoteAddress, header, clientAddress }: RequestSource): boolean {
  if (!isLoopbackAddress(remoteAddress) || !isLoopbackHost(header('host'))) return false
  const isForeign = header('sec-fetch-site') === 'cross-site' && header('sec-fetch-mode') !== 'navigate'
  if (isForeign && header('origin') === undefined) return false
  if (clientAddress !== undefined) return isLoopbackAddress(clientAddress)
  return FORWARDING_HEADERS.every((name) => header(name) === undefined)
}

/** Whether the value of a `Host` header is a name of this machine. */
export function isLoopbackHost(hostHeader: unknown): boolean {
  const host = /^(\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(String(hostHeader ?? ''))?.[1]
  return host !== undefined && isLoopback(host)
}
