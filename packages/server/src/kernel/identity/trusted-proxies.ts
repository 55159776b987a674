import { isIP } from 'node:net'
import { ownText } from 'webmq-client/protocol'
import { Networks } from '../base/networks.js'
import { UNIX_PEER } from '../ports/unix-socket.js'
import { isLoopbackAddress } from './client-address.js'
import { isLoopback } from './loopback.js'

/** Hops of one header that are looked at. Each one before the last is a proxy of the operator. */
const MAX_HOPS = 32
/** The part of a header that counts is no address. */
const MALFORMED = Symbol('malformed')

/**
 * Finds out which client a request is from, when the operator's proxies pass it on and name the client in
 * `X-Forwarded-For`. Whoever may open the Unix socket of the server counts as one. Nobody else is believed: everyone can
 * send the header.
 */
export class TrustedProxies {
  readonly #networks: Networks
  /** Headers of trusted proxies that were ignored, because a part of them that counts was no address. */
  malformedCount = 0

  /** @param networks Ranges of addresses, without a `networkDefect`. */
  constructor(networks: readonly string[]) {
    this.#networks = new Networks(networks)
  }

  /**
   * The address of the client: that of the peer, unless the peer is a trusted proxy that names another one. The header is
   * read from the right, because each proxy adds its peer there, and what a client sends is on the left. The first
   * address that is no trusted proxy is the client. If all are trusted, it is the leftmost.
   *
   * @param remoteAddress Of the peer.
   * @param header Returns one header, by its name in lower case; repeated ones are joined with commas.
   */
  clientAddress(remoteAddress: string, header: (name: string) => string | undefined): string {
    const client = this.#read(remoteAddress, header)
    if (client === MALFORMED) this.malformedCount++
    return client === undefined || client === MALFORMED ? remoteAddress : client
  }

  /** The client that a trusted proxy names; `undefined`: the peer is none, or names nobody. */
  namedClient(remoteAddress: string, header: (name: string) => string | undefined): string | undefined {
    const client = this.#read(remoteAddress, header)
    return client === MALFORMED ? undefined : client
  }

  /** Whether a peer is one: its connections carry requests of many clients. */
  includes(remoteAddress: string): boolean {
    return remoteAddress === UNIX_PEER || this.#networks.contains(remoteAddress)
  }

  isLocal(remoteAddress: string, header: (name: string) => string | undefined): boolean {
    return isFromThisMachine({ remoteAddress, header, clientAddress: this.namedClient(remoteAddress, header) })
  }

  #read(remoteAddress: string, header: (name: string) => string | undefined): string | typeof MALFORMED | undefined {
    if (!this.includes(remoteAddress)) return undefined
    const hops = header('x-forwarded-for')
    if (hops === undefined) return undefined
    let client = remoteAddress
    let end = hops.length
    for (let count = 0; count < MAX_HOPS && end >= 0; count++) {
      const comma = hops.lastIndexOf(',', end - 1)
      const hop = end === 0 ? undefined : addressOf(hops.slice(comma + 1, end))
      if (hop === undefined) return MALFORMED
      client = hop
      end = comma
      if (!this.#networks.contains(client)) return client
    }
    return end < 0 ? client : MALFORMED
  }
}

const MAX_HOP_CHARS = 64

/** Some proxies add the port: `203.0.113.7:1234`, `[2001:db8::1]:1234`. */
function addressOf(hop: string): string | undefined {
  const text = hop.trim()
  if (text.length > MAX_HOP_CHARS) return undefined
  const [, v6, v4] = /^(?:\[([^\]%]+)\]|(\d[\d.]*))(?::\d{1,5})?$/.exec(text) ?? []
  const address = v6 ?? v4 ?? text
  const family = isIP(address)
  if (family === 0 || address.includes('%') || (v6 !== undefined && family !== 6)) return undefined
  return ownText(address)
}

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
