import type { JWTPayload, JWTVerifyOptions } from 'jose'
import { defined } from '../base/defined.js'
import type { Logger } from '../base/logger.js'
import type { WordLimits } from '../ports/word-limits.js'
import { parseGrants } from './access.js'
import { claimDefect } from './claim-text.js'
import { type Identity, invalidToken } from './identity.js'
import { RemoteJwks } from './jwks.js'
import type { JwtOptions } from './jwt-options.js'
import { createKeyRing } from './keys.js'
import { parseLimitOverrides } from './limit-overrides.js'
import { PlainTokens } from './plain-token.js'
import type { TokenFailure } from './token-failure.js'
import { digestOf, VerifiedTokens } from './verified-tokens.js'

export interface TokenVerifierOptions {
  /** Gets a warning when a key set cannot be fetched. */
  readonly logger?: Logger
  /** The clock, Unix time in milliseconds. */
  readonly now?: () => number
  /** The key set of `jwksUrl`, if it is known already; the caller closes it. */
  readonly keySet?: RemoteJwks | undefined
  /** Limits of granted patterns; default: those of the options. */
  readonly wordLimits?: WordLimits | undefined
  /** Identities have the claims of their token; default false, because they take memory. */
  readonly keepsClaims?: boolean
}

export interface TokenVerifier {
  /**
   * Verifies the signature and the claims of a token (RFC 7515, RFC 7519). jose judges every token but the plain valid ones
   * (see {@link PlainTokens}) and those that were valid before (see {@link VerifiedTokens}).
   *
   * @throws {WebMQError} `E_TOKEN_EXPIRED` (retryable with a new token); `E_TOKEN_INVALID` with the
   *   reason; `E_INTERNAL` (retryable) when the keys cannot be fetched. No message contains the token.
   */
  verify(token: string): Promise<Identity>
  /**
   * The identity of a token that takes microseconds: a plain one, or one that was valid before. `undefined` says nothing about
   * a token; the errors of {@link verify} do.
   */
  verifyAtOnce?(token: string): Identity | undefined
  /** Ends a fetch of keys that is under way, so that it does not keep the process alive. */
  close(): void
  readonly failureCounts?: Readonly<Record<TokenFailure, number>>
}

/**
 * Creates a verifier. A key set is fetched only for the first token.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when a key cannot be read, or when an algorithm fits none.
 */
export function createTokenVerifier(jwt: JwtOptions, options: TokenVerifierOptions = {}): TokenVerifier {
  const { now = Date.now, wordLimits, keepsClaims = false } = options
  const { audience, clockToleranceS = DEFAULT_CLOCK_TOLERANCE_S, issuer, maxAgeS, requireExp, type } = jwt
  const ownKeySet =
    jwt.jwksUrl === undefined || options.keySet !== undefined ? undefined : new RemoteJwks(jwt.jwksUrl, options)
  const keySet = options.keySet ?? ownKeySet
  const keys = createKeyRing(jwt, keySet?.find.bind(keySet))
  // The keys decide about algorithms, never the token (RFC 8725 §3.1).
  const algorithms = [...keys.keys()]
  const rules: JWTVerifyOptions = {
    algorithms,
    clockTolerance: clockToleranceS,
    ...(requireExp === true ? { requiredClaims: ['exp'] } : {}),
    ...defined({ issuer, audience, maxTokenAge: maxAgeS, typ: type }),
  }
  const plainTokens = new PlainTokens(jwt, { ...jwt, clockToleranceS })
  const verified = new VerifiedTokens()

  /** `undefined`: the key set must be fetched first, so nothing that it has verified counts. */
  const keysVersion = () => (keySet === undefined ? 0 : keySet.usableVersion())

  const accept = (
    tokenDigest: string,
    token: string,
    payload: JWTPayload,
    nowMs: number,
    version: number | undefined,
  ) => {
    const identity = identityOf(payload, endOf(payload, maxAgeS), nowMs, clockToleranceS, wordLimits, keepsClaims)
    const notBeforeMs = ((payload.nbf ?? 0) - clockToleranceS) * 1000
    // Claims are objects of this session's application.
    if (version !== undefined && !keepsClaims) verified.set(tokenDigest, identity, notBeforeMs, version, token.length)
    return identity
  }

  const verifyAtOnce = (token: string): Identity | undefined => {
    if (token.length > MAX_TOKEN_CHARS) throw invalidToken(`longer than ${MAX_TOKEN_CHARS} characters`)
    const nowMs = now()
    const version = keysVersion()
    const digest = digestOf(token)
    const known = version === undefined ? undefined : verified.get(digest, nowMs, version)
    if (known !== undefined) return known
    const payload = plainTokens.verify(token, nowMs)
    return payload && accept(digest, token, payload, nowMs, version)
  }

  return {
    verifyAtOnce,
    async verify(token) {
      const identity = verifyAtOnce(token)
      if (identity !== undefined) return identity
      const nowMs = now()
      // The version before the verification: a key that goes meanwhile leaves nothing behind.
      const version = keysVersion()
      judge ??= await import('./judge.js')
      const payload = await judge.verifyByJose(token, keys, { ...rules, currentDate: new Date(nowMs) })
      return accept(digestOf(token), token, payload, nowMs, version)
    },
    close: () => ownKeySet?.close(),
  }
}

/** jose is loaded for the first token that it judges, or for the next one if that failed. */
let judge: typeof import('./judge.js') | undefined

const DEFAULT_CLOCK_TOLERANCE_S = 5
/** Far more than a token in a request head; limits how much a stranger can make the server decode. */
const MAX_TOKEN_CHARS = 16_384

/** When a token ends: by `exp`, or by its age. */
function endOf({ exp, iat }: JWTPayload, maxAgeS: number | undefined): number | undefined {
  if (maxAgeS === undefined || iat === undefined) return exp
  return Math.min(exp ?? Number.POSITIVE_INFINITY, iat + maxAgeS)
}

function identityOf(
  payload: JWTPayload,
  exp: number | undefined,
  nowMs: number,
  clockToleranceS: number,
  wordLimits: WordLimits | undefined,
  keepsClaims: boolean,
): Identity {
  const { iat, jti, sub, webmq } = payload
  if (sub !== undefined) assertText('sub', sub)
  // A token whose id nobody could name in a revocation would be beyond revocation.
  if (jti !== undefined) assertText('jti', jti)
  const grants = parseGrants(webmq, wordLimits)
  const limits = parseLimitOverrides(webmq)
  // JSON allows 1e999, which becomes Infinity, as 1e306 does in milliseconds.
  if (exp !== undefined && !Number.isFinite(exp * 1000)) throw invalidToken('claim exp is malformed')
  // Assigned one by one: a literal of spreads takes 2 µs.
  const identity: { -readonly [Name in keyof Identity]: Identity[Name] } = { grants }
  if (sub !== undefined) identity.userId = sub
  if (jti !== undefined) identity.tokenId = jti
  // It is here, so it was issued before now, whatever a clock says that is ahead: a revocation of now covers it.
  if (iat !== undefined) identity.issuedAtS = Math.min(iat, nowMs / 1000)
  if (exp !== undefined) identity.expiresAtMs = expiryMs(exp, nowMs, clockToleranceS)
  if (limits !== undefined) identity.limits = limits
  if (keepsClaims) identity.claims = payload
  return identity
}

function assertText(name: string, claim: unknown): void {
  const defect = claimDefect(claim)
  if (defect !== undefined) throw invalidToken(`claim ${name} ${defect}`)
}

/** A token that is accepted only because of the tolerance lives until the tolerance ends. */
function expiryMs(exp: number, nowMs: number, clockToleranceS: number): number {
  return exp * 1000 > nowMs ? exp * 1000 : (exp + clockToleranceS) * 1000
}

/**
 * A verifier whose keys and rules can be replaced while the server runs. A token is verified by those that are in use when
 * its turn comes. A key set whose address stays the same keeps what it has fetched: its address may be away.
 */
export class ReloadableVerifier implements TokenVerifier {
  readonly #options: Omit<TokenVerifierOptions, 'keySet'>
  #keySet: { readonly url: string; readonly keys: RemoteJwks } | undefined
  #verifier: TokenVerifier

  /** @throws {WebMQError} As {@link createTokenVerifier}. */
  constructor(jwt: JwtOptions, options: Omit<TokenVerifierOptions, 'keySet'> = {}) {
    this.#options = options
    this.#keySet = this.#keySetOf(jwt)
    this.#verifier = createTokenVerifier(jwt, { ...options, keySet: this.#keySet?.keys })
  }

  verify(token: string): Promise<Identity> {
    return this.#verifier.verify(token)
  }

  verifyAtOnce(token: string): Identity | undefined {
    return this.#verifier.verifyAtOnce?.(token)
  }

  /**
   * Prepares other keys and rules. The returned function puts them to use.
   * @param wordLimits Replaces the limits of granted patterns; absent: they stay.
   * @throws {WebMQError} As {@link createTokenVerifier}; nothing has changed.
   */
  prepare(jwt: JwtOptions, wordLimits = this.#options.wordLimits): () => void {
    const keySet = this.#keySetOf(jwt)
    const verifier = createTokenVerifier(jwt, { ...this.#options, wordLimits, keySet: keySet?.keys })
    return () => {
      if (keySet !== this.#keySet) this.#keySet?.keys.close()
      this.#keySet = keySet
      this.#verifier = verifier
    }
  }

  close(): void {
    this.#keySet?.keys.close()
  }

  #keySetOf({ jwksUrl: url }: JwtOptions): { readonly url: string; readonly keys: RemoteJwks } | undefined {
    if (url === undefined) return undefined
    const { logger, now } = this.#options
    return this.#keySet?.url === url ? this.#keySet : { url, keys: new RemoteJwks(url, { logger, now }) }
  }
}
