import {
  BEARER_SUBPROTOCOL_PREFIX,
  ERRORS,
  type ErrorCode,
  type ErrorSpec,
  SUBPROTOCOL,
  WebMQError,
} from 'webmq-client/protocol'
import { isOriginAllowed, type OwnHosts } from '../identity/origin.js'
import type { Rejection, UpgradeRequest } from '../ports/transport.js'

/** Which upgrade requests are accepted. */
export interface UpgradePolicy {
  /** Path of the endpoint. */
  readonly path: string
  /** Origins that may connect in addition to the server's own. */
  readonly origins: readonly string[]
  /** Host names under which the server's own pages may connect; default `all`. */
  readonly ownHosts?: OwnHosts
  /** Whether only clients of this machine may connect, and this request is not from one; default: never. */
  readonly isOutsider?: (request: UpgradeRequest, clientAddress: string) => boolean
}

/** An upgrade request that passed all checks. */
export interface AdmissibleUpgrade {
  /** Subprotocol of the answer; absent when the client offered none. */
  readonly subprotocol?: string
  /** Token of the request, not verified yet. */
  readonly token?: string
}

/**
 * Checks an upgrade request, cheapest check first.
 * @param clientAddress The address of the peer, or what a trusted proxy says.
 * @throws {WebMQError} Errors with an HTTP status in their table row: `E_PATH_NOT_FOUND`, `E_INSECURE`,
 *   `E_ORIGIN_FORBIDDEN`, `E_SUBPROTOCOL_UNSUPPORTED`.
 */
export function examineUpgrade(
  request: UpgradeRequest,
  policy: UpgradePolicy,
  clientAddress: string,
): AdmissibleUpgrade {
  const { path, subprotocols } = request
  if (path !== policy.path) throw new WebMQError('E_PATH_NOT_FOUND', { detail: `the endpoint is ${policy.path}` })
  if (policy.isOutsider?.(request, clientAddress) === true) {
    throw new WebMQError('E_INSECURE', { detail: 'without tokens, only clients of this machine may connect' })
  }
  const origin = request.header('origin')
  if (origin !== undefined && !isOriginAllowed(origin, request.header('host'), policy.origins, policy.ownHosts)) {
    throw new WebMQError('E_ORIGIN_FORBIDDEN')
  }
  const isOffered = subprotocols.includes(SUBPROTOCOL)
  if (!isOffered && subprotocols.length > 0) {
    throw new WebMQError('E_SUBPROTOCOL_UNSUPPORTED', { detail: `offer ${SUBPROTOCOL}` })
  }
  const token = tokenOf(request.header('authorization'), subprotocols)
  // Written out because it runs for every connection.
  if (token === undefined) return isOffered ? { subprotocol: SUBPROTOCOL } : {}
  return isOffered ? { subprotocol: SUBPROTOCOL, token } : { token }
}

/** The `Authorization` header wins. Browsers cannot set it, so they offer the token as a subprotocol. */
function tokenOf(authorization: string | undefined, subprotocols: readonly string[]): string | undefined {
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
