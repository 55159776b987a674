import { isLoopback } from './loopback.js'

/**
 * Under which names the server takes a page for its own. `loopback`: only when it was asked for as `localhost` or a
 * loopback address, because any page can give its own name the address of this machine (DNS rebinding) and then has the
 * origin that it asks for.
 */
export type OwnHosts = 'all' | 'loopback'

/** Schemes that a page may have, with the port that goes without saying. */
const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/** `scheme://host[:port]`: a `*` may stand for the first labels of the host, and for the port. */
const ORIGIN_PATTERN = /^([a-z][a-z0-9+.-]*):\/\/(\*\.)?([^\s*/?#@:]+|\[[0-9a-f:.]+\])(?::(\d{1,5}|\*))?$/

interface OriginParts {
  readonly scheme: string
  readonly host: string
  /** Empty when the scheme has no default and none was named. */
  readonly port: string
}

/** Whether a text may stand in the list of allowed origins. */
export function isOriginPattern(text: string): boolean {
  return text === '*' || text === 'null' || ORIGIN_PATTERN.test(text.toLowerCase())
}

/** What {@link isOriginPattern} takes, in words. */
export function describeAllowedOrigin(): string {
  return "'*', 'null', or scheme://host[:port] without a path, such as https://app.example.com, https://*.example.com or http://localhost:*"
}

/**
 * Whether a page of this origin may connect.
 *
 * - Without an `Origin` header the request comes from no browser page: allowed (a browser cannot leave it out).
 * - The server's own origin is always allowed: same host, and same port, where a `Host` without a port stands for the
 *   default port of the origin's scheme (a proxy that ends TLS hides the scheme).
 * - Otherwise one of `origins` must match: `*` all, `https://*.example.com` one or more labels before `example.com`
 *   but not `example.com` itself, `http://localhost:*` any port, `null` the opaque origin (sandboxed frames, files).
 *
 * Cost: O(origins), once per upgrade.
 *
 * @param origins Entries that {@link isOriginPattern} takes.
 * @param ownHosts Default `all`.
 */
export function isOriginAllowed(
  originHeader: string | undefined,
  hostHeader: string | undefined,
  origins: readonly string[],
  ownHosts: OwnHosts = 'all',
): boolean {
  if (originHeader === undefined) return true
  if (origins.includes('*')) return true
  if (originHeader === 'null') return origins.includes('null')
  const origin = parseOrigin(originHeader)
  if (origin === undefined) return false
  return isOwn(origin, hostHeader, ownHosts) || origins.some((pattern) => matchesOrigin(pattern, origin))
}

/** RFC 6454 §7: an origin is `scheme://host[:port]`, nothing more; two values in one header are none. */
function parseOrigin(text: string): OriginParts | undefined {
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^\s*/?#@:,]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/.exec(text.toLowerCase())
  if (match === null) return undefined
  const scheme = `${match[1]}:`
  return { scheme, host: match[2] ?? '', port: match[3] ?? DEFAULT_PORTS[scheme] ?? '' }
}

function isOwn(origin: OriginParts, hostHeader: string | undefined, ownHosts: OwnHosts): boolean {
  return isSameHost(origin, hostHeader) && (ownHosts === 'all' || isLoopback(origin.host))
}

function isSameHost(origin: OriginParts, hostHeader: string | undefined): boolean {
  const match = /^([^\s*/?#@:,]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/.exec(hostHeader?.toLowerCase() ?? '')
  if (match === null || !(origin.scheme in DEFAULT_PORTS)) return false
  return match[1] === origin.host && (match[2] ?? DEFAULT_PORTS[origin.scheme]) === origin.port
}

function matchesOrigin(pattern: string, origin: OriginParts): boolean {
  const match = ORIGIN_PATTERN.exec(pattern.toLowerCase())
  if (match === null) return false
  const [, scheme, wildcard, host = '', port] = match
  if (`${scheme}:` !== origin.scheme) return false
  if (port !== '*' && (port ?? DEFAULT_PORTS[origin.scheme] ?? '') !== origin.port) return false
  return wildcard === undefined ? origin.host === host : origin.host.endsWith(`.${host}`) && origin.host[0] !== '.'
}
