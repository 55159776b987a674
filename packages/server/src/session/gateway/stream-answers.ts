import { ERRORS, type ErrorCode, type ErrorSpec, type WebMQError } from 'webmq-client/protocol'
import { isOriginAllowed } from '../../identity/origin.js'
import type { Rejection, UpgradeRequest } from '../../ports/transport.js'
import { rejectionOf, type UpgradePolicy } from './upgrade.js'

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
