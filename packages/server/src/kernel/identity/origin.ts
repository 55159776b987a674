import { isLoopback } from './loopback.js'

/**
 * Host names under which pages count as the server's own. `loopback` allows only `localhost` and loopback addresses.
 * Otherwise a foreign page could point its own name at this machine (DNS rebinding), and its origin would match `Host`.
 */
export type OwnHosts = 'all' | 'loopback'

/** Schemes of pages, with their default ports. */
const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/** `scheme://host[:port]`; a `*` may replace the first labels of the host, and the port. */
const ORIGIN_PATTERN = /^([a-z][a-z0-9+.-]*):\/\/(\*\.)?([^\s*/?#@:]+|\[[0-9a-f:.]+\])(?::(\d{1,5}|\*))?$/

interface OriginParts {
  readonly scheme: string
  readonly host: string
  /** Empty when neither the origin nor the scheme defines one. */
  readonly port: string
}

export function isOriginPattern(text: string): boolean {
  return text === '*' || text === 'null' || ORIGIN_PATTERN.test(text.toLowerCase())
}

export function describeAllowedOrigin(): string {
  return "'*', 'null', or scheme://host[:port] without a path, such as https://app.example.com, https://*.example.com or http://localhost:*"
}

/**
 * Whether a page of this origin may connect.
 *
 * - A request without an `Origin` header is allowed. Browsers always send one, so no page made the request.
 * - The server's own origin is always allowed: same host and port. A `Host` without a port means the default port of the
 *   origin's scheme, because a proxy that terminates TLS hides the scheme.
 * - Otherwise an entry of `origins` must match. `*` allows all, `https://*.example.com` one or more labels before
 *   `example.com` but not `example.com` itself, `http://localhost:*` any port, `null` the opaque origin of sandboxed
 *   frames and files.
 *
 * Cost: O(origins), once per upgrade.
 *
 * @param origins Entries that {@link isOriginPattern} accepts.
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

/** RFC 6454 §7: an origin is `scheme://host[:port]` and nothing else; a header with two values is invalid. */
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
