import { ERRORS, type ErrorCode } from 'webmq-client/protocol'

/** The HTTP status of each error that the API answers with. Any other error is a bug, and is answered with 500. */
export const STATUSES = {
  E_REQUEST_INVALID: 400,
  E_UNAUTHENTICATED: 401,
  E_TOKEN_INVALID: 401,
  E_TOKEN_EXPIRED: 401,
  E_TOKEN_REVOKED: 401,
  E_FORBIDDEN: 403,
  E_ORIGIN_FORBIDDEN: 403,
  E_INSECURE: 403,
  E_PATH_NOT_FOUND: 404,
  E_MESSAGE_TIMEOUT: 408,
  E_PAYLOAD_TOO_LARGE: 413,
  E_KEY_INVALID: 422,
  E_MESSAGE_INVALID: 422,
  E_POSITION_INVALID: 422,
  E_PAYLOAD_INVALID: 422,
  E_RATE_LIMIT: 429,
  E_STATE_LIMIT: 507,
  E_STREAM_BUSY: 409,
  E_STREAM_ENDED: 409,
  E_STREAM_SEQUENCE: 409,
  E_STREAM_LIMIT: 507,
  E_LISTEN_LIMIT: 507,
  E_STREAM_NOT_FOUND: 404,
  E_STREAM_GONE: 410,
  E_INTERNAL: 500,
  E_UNSUPPORTED: 501,
  E_BROKER_UNAVAILABLE: 503,
  E_HOOK_FAILED: 503,
  E_NODE_BEHIND: 503,
  E_NOT_RUNNING: 503,
  E_TIMEOUT: 504,
} as const satisfies { readonly [Code in ErrorCode]?: number }

export type ApiErrorCode = keyof typeof STATUSES

/** The status of an error: 403 for a code of the application, 500 for one of the table that the API does not know. */
export function statusOf(code: ErrorCode): number {
  if (!Object.hasOwn(ERRORS, code)) return 403
  return Object.hasOwn(STATUSES, code) ? STATUSES[code as ApiErrorCode] : STATUSES.E_INTERNAL
}
