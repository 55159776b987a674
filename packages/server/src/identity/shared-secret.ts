import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { decodeProtectedHeader, type JWTPayload } from 'jose'

/** Rules for tokens, like jose's `JWTVerifyOptions`. */
export interface SharedSecretRules {
  /** Allowed algorithms, whatever the token names (RFC 8725 §3.1). */
  readonly algorithms: readonly string[]
  readonly issuer?: string | undefined
  readonly audience?: string | undefined
  readonly clockToleranceS: number
}

/** Returns the claims of a valid token; `undefined` means that jose decides. */
export type SharedSecretVerifier = (token: string, nowMs: number) => JWTPayload | undefined

/** RFC 7518 §3.2. */
const HASHES: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' }

/**
 * Verifies tokens of a shared secret synchronously. jose uses promises and the thread pool, which cost many times more
 * than the signature itself (ADR 6).
 *
 * This is a fast path for valid, ordinary tokens. It refuses nothing, and accepts only tokens that jose would accept.
 * For any other token, jose decides and describes the error.
 */
export function createSharedSecretVerifier(key: KeyObject, rules: SharedSecretRules): SharedSecretVerifier {
  // All tokens of an issuer begin with the same header, so it is parsed once.
  let knownHeader: string | undefined
  let knownHash: string | undefined
  return (token, nowMs) => {
    const payloadAt = token.indexOf('.') + 1
    const signatureAt = token.indexOf('.', payloadAt) + 1
    if (payloadAt === 0 || signatureAt === 0 || token.includes('.', signatureAt)) return undefined
    const header = token.slice(0, payloadAt - 1)
    if (header !== knownHeader) {
      knownHash = hashOf(token, rules.algorithms)
      knownHeader = header
    }
    if (knownHash === undefined || !isSigned(token, signatureAt, knownHash, key)) return undefined
    const claims = claimsOf(token.slice(payloadAt, signatureAt - 1))
    return claims !== undefined && areValid(claims, rules, Math.floor(nowMs / 1_000)) ? claims : undefined
  }
}

/** The hash that the header names; `undefined` when it is not allowed or when the header has extensions. */
function hashOf(token: string, algorithms: readonly string[]): string | undefined {
  try {
    const { alg, crit } = decodeProtectedHeader(token)
    return alg === undefined || crit !== undefined || !algorithms.includes(alg) ? undefined : HASHES[alg]
  } catch {
    // The header is malformed; jose reports it.
    return undefined
  }
}

/** Compares the text, so that only the encoding of RFC 7515 §2 is accepted. */
function isSigned(token: string, signatureAt: number, hash: string, key: KeyObject): boolean {
  const mac = createHmac(hash, key).update(token.slice(0, signatureAt - 1))
  const expected = Buffer.from(mac.digest('base64url'))
  const given = Buffer.from(token.slice(signatureAt))
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const strictDecoder = new TextDecoder('utf-8', { fatal: true })
const BITS_PER_LETTER = 6

function claimsOf(payload: string): JWTPayload | undefined {
  const bytes = Buffer.from(payload, 'base64url')
  // Fewer bytes than letters mean that invalid letters were skipped.
  if (bytes.length !== Math.floor((payload.length * BITS_PER_LETTER) / 8)) return undefined
  try {
    const claims: unknown = JSON.parse(strictDecoder.decode(bytes))
    return typeof claims === 'object' && claims !== null && !Array.isArray(claims) ? (claims as JWTPayload) : undefined
  } catch {
    // Not JSON; jose reports it.
    return undefined
  }
}

/** Checks the claims of RFC 7519 §4.1 like jose does. */
function areValid({ iss, aud, iat, nbf, exp }: JWTPayload, rules: SharedSecretRules, nowS: number): boolean {
  const { issuer, audience, clockToleranceS } = rules
  return (
    (issuer === undefined || iss === issuer) &&
    (audience === undefined || (Array.isArray(aud) ? aud.includes(audience) : aud === audience)) &&
    (iat === undefined || typeof iat === 'number') &&
    (nbf === undefined || (typeof nbf === 'number' && nbf <= nowS + clockToleranceS)) &&
    (exp === undefined || (typeof exp === 'number' && exp > nowS - clockToleranceS))
  )
}
