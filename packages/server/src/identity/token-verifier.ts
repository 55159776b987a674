import { errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose'
import { WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../logger.js'
import type { WordLimits } from '../ports/word-limits.js'
import { claimDefect } from './claim-text.js'
import { parseGrants } from './grants.js'
import type { Identity } from './identity.js'
import { RemoteJwks } from './jwks.js'
import { allowedAlgorithms, configuredKey } from './keys.js'
import { parseLimitOverrides } from './limit-overrides.js'
import type { TokenFailure } from './token-failures.js'

/** How tokens are verified. Set exactly one of `secret`, `publicKey` and `jwksUrl`. */
export interface JwtOptions {
  /** Shared secret; verifies HS256, HS384 and HS512. */
  readonly secret?: string | undefined
  /** PEM text of a public key (RSA, EC, Ed25519); verifies the algorithms of its type, never HS. */
  readonly publicKey?: string | undefined
  /** Address of a JSON Web Key Set; verifies all algorithms except HS. */
  readonly jwksUrl?: string | undefined
  /** Required `iss`. */
  readonly issuer?: string | undefined
  /** Required entry of `aud`. */
  readonly audience?: string | undefined
  /** Allowed clock difference, in seconds; default 5. */
  readonly clockToleranceS?: number | undefined
  /** The accepted algorithms; empty or absent: all that fit the key. */
  readonly algorithms?: readonly string[] | undefined
}

/** Options of {@link createTokenVerifier}; all are optional. */
export interface TokenVerifierOptions {
  /** Gets a warning when a key set cannot be fetched. */
  readonly logger?: Logger
  /** The clock, Unix time in milliseconds. */
  readonly now?: () => number
  /** Limits of granted patterns; default: those of the options. */
  readonly wordLimits?: WordLimits | undefined
  /** Identities have the claims of their token; default false, because they take memory. */
  readonly keepsClaims?: boolean
}

/** Turns tokens into identities. */
export interface TokenVerifier {
  /**
   * Verifies the signature and the claims of a token (RFC 7515, RFC 7519), by jose.
   *
   * @throws {WebMQError} `E_TOKEN_EXPIRED` (retryable with a new token); `E_TOKEN_INVALID` with the
   *   reason; `E_INTERNAL` (retryable) when the keys cannot be fetched. No message contains the token.
   */
  verify(token: string): Promise<Identity>
  /** Ends a fetch of keys that is under way, so that it does not keep the process alive. */
  close(): void
  /** Refused tokens since the start, by reason. */
  readonly failureCounts?: Readonly<Record<TokenFailure, number>>
}

/**
 * Creates a verifier. A key set is fetched only for the first token.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when the key cannot be read, or when an algorithm does not fit it.
 */
export function createTokenVerifier(jwt: JwtOptions, options: TokenVerifierOptions = {}): TokenVerifier {
  const { logger, now = Date.now, wordLimits, keepsClaims = false } = options
  const { audience, clockToleranceS = DEFAULT_CLOCK_TOLERANCE_S, issuer } = jwt
  // The key decides about algorithms, never the token (RFC 8725 §3.1).
  const algorithms = [...allowedAlgorithms(jwt)]
  const rules: JWTVerifyOptions = {
    algorithms,
    clockTolerance: clockToleranceS,
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
  }
  const keySet = jwt.jwksUrl === undefined ? undefined : new RemoteJwks(jwt.jwksUrl, { logger, now })
  const findKey = configuredKey(jwt) ?? keySet?.find.bind(keySet)
  if (findKey === undefined) {
    throw new WebMQError('E_OPTION_INVALID', { detail: 'jwt: needs one of secret, publicKey and jwksUrl' })
  }
  return {
    async verify(token) {
      if (token.length > MAX_TOKEN_CHARS) throw invalid(`longer than ${MAX_TOKEN_CHARS} characters`)
      const nowMs = now()
      const payload = await verifyByJose(token, findKey, { ...rules, currentDate: new Date(nowMs) })
      const identity = identityOf(payload, nowMs, clockToleranceS, wordLimits)
      const limits = parseLimitOverrides(payload.webmq)
      if (limits === undefined && !keepsClaims) return identity
      return { ...identity, ...(limits && { limits }), ...(keepsClaims && { claims: payload }) }
    },
    close: () => keySet?.close(),
  }
}

const DEFAULT_CLOCK_TOLERANCE_S = 5
/** Far more than a token in a request head; limits how much a stranger can make the server decode. */
const MAX_TOKEN_CHARS = 16_384

async function verifyByJose(token: string, findKey: JWTVerifyGetKey, rules: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, findKey, rules)
    return payload
  } catch (error) {
    throw toWebMQError(error)
  }
}

/** The identity in a verified token. */
function identityOf(
  { exp, iat, jti, sub, webmq }: JWTPayload,
  nowMs: number,
  clockToleranceS: number,
  wordLimits: WordLimits | undefined,
): Identity {
  if (sub !== undefined) assertText('sub', sub)
  // A token whose id nobody could name in a revocation would be beyond revocation.
  if (jti !== undefined) assertText('jti', jti)
  const grants = parseGrants(webmq, wordLimits)
  // JSON allows 1e999, which becomes Infinity, as 1e306 does in milliseconds.
  if (exp !== undefined && !Number.isFinite(exp * 1000)) throw invalid('claim exp is malformed')
  return {
    ...(sub === undefined ? undefined : { userId: sub }),
    grants,
    ...(jti === undefined ? undefined : { tokenId: jti }),
    ...(iat === undefined ? undefined : { issuedAtS: iat }),
    ...(exp === undefined ? undefined : { expiresAtMs: expiryMs(exp, nowMs, clockToleranceS) }),
  }
}

function assertText(name: string, claim: unknown): void {
  const defect = claimDefect(claim)
  if (defect !== undefined) throw invalid(`claim ${name} ${defect}`)
}

/** A token that is accepted only because of the tolerance lives until the tolerance ends. */
function expiryMs(exp: number, nowMs: number, clockToleranceS: number): number {
  return exp * 1000 > nowMs ? exp * 1000 : (exp + clockToleranceS) * 1000
}

function toWebMQError(error: unknown): unknown {
  if (error instanceof WebMQError) return error
  if (error instanceof errors.JWTExpired) return new WebMQError('E_TOKEN_EXPIRED', { cause: error })
  if (error instanceof errors.JOSEError) return invalid(describe(error), error)
  return new WebMQError('E_INTERNAL', { detail: 'the token could not be verified', cause: error })
}

/** Describes the error without repeating text of the token, because that text is unverified. */
function describe(error: errors.JOSEError): string {
  if (error instanceof errors.JWTClaimValidationFailed) {
    const rule = CLAIM_RULES[error.claim]
    return rule === undefined ? 'a claim is malformed' : `claim ${error.claim} ${rule}`
  }
  return DESCRIPTIONS[error.code] ?? 'malformed'
}

const CLAIM_RULES: Readonly<Record<string, string>> = {
  iss: 'is not the required issuer',
  aud: 'does not contain the required audience',
  nbf: 'is in the future or malformed',
  iat: 'is malformed',
  exp: 'is malformed',
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  [errors.JOSEAlgNotAllowed.code]: 'its algorithm is not allowed for the key',
  [errors.JOSENotSupported.code]: 'its algorithm is not supported',
  [errors.JWSSignatureVerificationFailed.code]: 'its signature does not match',
  [errors.JWKSNoMatchingKey.code]: 'no key matches it',
  [errors.JWKSMultipleMatchingKeys.code]: 'several keys match it; it must name one (kid)',
  [errors.JWSInvalid.code]: 'not a signed JWT',
  [errors.JWTInvalid.code]: 'not a signed JWT with claims',
}

function invalid(detail: string, cause?: unknown): WebMQError {
  return new WebMQError('E_TOKEN_INVALID', { detail, cause })
}
