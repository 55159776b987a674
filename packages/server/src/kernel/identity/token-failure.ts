import { WebMQError } from 'webmq-client/protocol'
import { Counts } from '../base/counts.js'

export const TOKEN_FAILURES = [
  'algorithm',
  'claim',
  'expired',
  'key',
  'keys-unavailable',
  'malformed',
  'revoked',
  'signature',
  'too-many',
] as const

export type TokenFailure = (typeof TOKEN_FAILURES)[number]

/** The counts of a server that verifies no tokens. */
export const NO_TOKEN_FAILURES = new Counts(TOKEN_FAILURES).stats()

const BY_CODE: Readonly<Record<string, TokenFailure>> = {
  E_TOKEN_EXPIRED: 'expired',
  E_TOKEN_REVOKED: 'revoked',
  E_RATE_LIMIT: 'too-many',
  E_INTERNAL: 'keys-unavailable',
}

/** By code of an error of jose, the cause of `E_TOKEN_INVALID`. */
const BY_CAUSE: Readonly<Record<string, TokenFailure>> = {
  ERR_JOSE_ALG_NOT_ALLOWED: 'algorithm',
  ERR_JOSE_NOT_SUPPORTED: 'algorithm',
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'key',
  ERR_JWKS_NO_MATCHING_KEY: 'key',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'signature',
  ERR_JWT_CLAIM_VALIDATION_FAILED: 'claim',
}

export function tokenFailureOf(error: unknown): TokenFailure {
  if (!(error instanceof WebMQError)) return 'keys-unavailable'
  const known = BY_CODE[error.code]
  if (known !== undefined) return known
  const { cause } = error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return BY_CAUSE[code] ?? 'malformed'
}
