import {
  BEARER_SUBPROTOCOL_PREFIX,
  ERRORS,
  type ErrorCode,
  type ErrorSpec,
  SUBPROTOCOL,
  WebMQError,
} from 'webmq-client/protocol'
import { isOriginAllowed, type OwnHosts } from '../../identity/origin.js'
import type { Rejection, UpgradeRequest } from '../../ports/transport.js'

/** Values of `Sec-Fetch-Site` of requests that no page of another origin has made; older browsers and other clients send none. */
const SAME_ORIGIN_FETCHES: readonly (string | undefined)[] = ['same-origin', 'none', undefined]

export interface UpgradePolicy {
  readonly path: string
  /** Origins that may connect in addition to the server's own. */
  readonly origins: readonly string[]
  /** Host names under which the server's own pages may connect; default `all`. */
  readonly ownHosts?: OwnHosts
  /** Whether only clients of this machine may connect, and this request is not from one; default: never. */
  readonly isOutsider?: (request: UpgradeRequest) => boolean
  /** Cookie that may hold the token; absent: none. */
  readonly tokenCookie?: string
}

export interface AdmissibleUpgrade {
  /** Subprotocol of the answer; absent when the client offered none. */
  readonly subprotocol?: string
  /** Token of the request, not verified yet. */
  readonly token?: string
}

/**
 * Checks an upgrade request, cheapest check first.
 * @throws {WebMQError} Errors with an HTTP status in their table row: `E_PATH_NOT_FOUND`, `E_INSECURE`,
 *   `E_ORIGIN_FORBIDDEN`, `E_SUBPROTOCOL_UNSUPPORTED`.
 */
export function examineUpgrade(request: UpgradeRequest, policy: UpgradePolicy): AdmissibleUpgrade {
  const { path, subprotocols } = request
  if (path !== policy.path) throw new WebMQError('E_PATH_NOT_FOUND', { detail: `the endpoint is ${policy.path}` })
  assertOrigin(request, policy)
  const isOffered = subprotocols.includes(SUBPROTOCOL)
  if (!isOffered && subprotocols.length > 0) {
    throw new WebMQError('E_SUBPROTOCOL_UNSUPPORTED', { detail: `offer ${SUBPROTOCOL}` })
  }
  const token = tokenOf(request, subprotocols) ?? tokenInCookie(request, policy)
  // Written out because it runs for every connection.
  if (token === undefined) return isOffered ? { subprotocol: SUBPROTOCOL } : {}
  return isOffered ? { subprotocol: SUBPROTOCOL, token } : { token }
}

/**
 * Checks a request for an event stream, and finds its token.
 * @throws {WebMQError} `E_INSECURE`, `E_ORIGIN_FORBIDDEN`.
 */
export function examineStream(request: UpgradeRequest, policy: UpgradePolicy): AdmissibleUpgrade {
  assertOrigin(request, policy)
  const token = tokenOf(request, []) ?? tokenInCookie(request, policy)
  return token === undefined ? {} : { token }
}

function assertOrigin(request: UpgradeRequest, { isOutsider, origins, ownHosts }: UpgradePolicy): void {
  if (isOutsider?.(request) === true) {
    throw new WebMQError('E_INSECURE', { detail: 'without tokens, only clients of this machine may connect' })
  }
  const origin = request.header('origin')
  if (origin !== undefined && !isOriginAllowed(origin, request.header('host'), origins, ownHosts)) {
    throw new WebMQError('E_ORIGIN_FORBIDDEN')
  }
}

/**
 * The token in a cookie. A browser sends cookies with the requests of every page, so the page must be one that `origins` names,
 * or of this server: `*` and `null` do not count. A request without `Origin` is of the same origin, if it comes from a page.
 */
function tokenInCookie(request: UpgradeRequest, policy: UpgradePolicy): string | undefined {
  const { tokenCookie, origins, ownHosts } = policy
  if (tokenCookie === undefined) return undefined
  const token = cookieOf(request.header('cookie'), tokenCookie)
  if (token === undefined) return undefined
  const origin = request.header('origin')
  const named = origins.filter((pattern) => pattern !== '*' && pattern !== 'null')
  const isNamed =
    origin === undefined
      ? SAME_ORIGIN_FETCHES.includes(request.header('sec-fetch-site'))
      : isOriginAllowed(origin, request.header('host'), named, ownHosts)
  if (!isNamed)
    throw new WebMQError('E_ORIGIN_FORBIDDEN', { detail: 'a token in a cookie needs an origin that is named' })
  return token
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  const cookies = (header ?? '').split(';').map((cookie) => cookie.trim())
  const value = cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1)
  // RFC 6265 §4.1.1: a value may be in quotes.
  return value === undefined || value === '' ? undefined : value.replace(/^"(.*)"$/, '$1')
}

/** The `Authorization` header wins. Browsers cannot set it, so they offer the token as a subprotocol. */
function tokenOf(request: UpgradeRequest, subprotocols: readonly string[]): string | undefined {
  const authorization = request.header('authorization')
  if (authorization !== undefined) {
    const [, token] = /^bearer +(\S+)$/i.exec(authorization) ?? []
    if (token !== undefined) return token
  }
  const offer = subprotocols.find((name) => name.startsWith(BEARER_SUBPROTOCOL_PREFIX))
  return offer?.slice(BEARER_SUBPROTOCOL_PREFIX.length)
}

/** The HTTP answer for a refused upgrade: a status, and a body with the reason and a link to the docs. */
export function rejectionOf(error: WebMQError, headers: Readonly<Record<string, string>> = {}): Rejection {
  const { code, message, docs } = error
  return {
    status: statusOf(code) ?? 500,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', ...headers },
    body: `${JSON.stringify({ code, message, docs })}\n`,
  }
}

function statusOf(code: ErrorCode): number | undefined {
  const spec: ErrorSpec = ERRORS[code]
  return spec.status
}

/** Status of refusals that are protocol messages on a WebSocket. */
const STATUSES: { readonly [Code in ErrorCode]?: number } = {
  E_MESSAGE_INVALID: 400,
  E_PATTERN_INVALID: 400,
  E_POSITION_INVALID: 400,
  E_LISTEN_LIMIT: 400,
  E_UNAUTHENTICATED: 401,
  E_TOKEN_INVALID: 401,
  E_TOKEN_EXPIRED: 401,
  E_TOKEN_REVOKED: 401,
  E_KEY_INVALID: 400,
  E_FORBIDDEN: 403,
  E_STREAM_ENDED: 409,
  E_RATE_LIMIT: 429,
  E_UNSUPPORTED: 501,
  E_BROKER_UNAVAILABLE: 503,
}

/** Headers by which a page of another origin may read an answer; none for one that may not connect. */
export function corsHeaders(
  request: Pick<UpgradeRequest, 'header'>,
  { origins, ownHosts, tokenCookie }: UpgradePolicy,
): Readonly<Record<string, string>> {
  const origin = request.header('origin')
  if (origin === undefined || !isOriginAllowed(origin, request.header('host'), origins, ownHosts)) return {}
  return {
    'access-control-allow-origin': origin,
    vary: 'Origin',
    ...(tokenCookie === undefined ? {} : { 'access-control-allow-credentials': 'true' }),
  }
}

/** The HTTP answer for a refused event stream. Unlike a WebSocket, a page can read it. */
export function streamRejectionOf(error: WebMQError, headers: Readonly<Record<string, string>>): Rejection {
  const spec: ErrorSpec = ERRORS[error.code]
  const status = STATUSES[error.code] ?? spec.status ?? 500
  const challenge = status === 401 ? { 'www-authenticate': 'Bearer' } : {}
  return { ...rejectionOf(error, { ...headers, ...challenge }), status }
}
