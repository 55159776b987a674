import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose'
import { WebMQError } from 'webmq-client/protocol'
import { invalidToken } from './identity.js'
import type { KeyRing } from './keys.js'

/**
 * The claims of a token that jose finds valid. Tries the keys of the token's algorithm, of which there are few. jose has
 * checked the algorithm before it asks for one.
 * @throws {WebMQError} As {@link TokenVerifier.verify}.
 */
export async function verifyByJose(token: string, keys: KeyRing, rules: JWTVerifyOptions): Promise<JWTPayload> {
  let count = 1
  for (let index = 0; ; index++) {
    try {
      const { payload } = await jwtVerify(
        token,
        (header, jws) => {
          const fitting = keys.get(header.alg) ?? []
          count = fitting.length
          const find = fitting[index]
          if (find === undefined) throw new errors.JWKSNoMatchingKey()
          return find(header, jws)
        },
        rules,
      )
      assertIssued(payload, rules)
      return payload
    } catch (error) {
      const mayBeOfAnother = error instanceof errors.JWSSignatureVerificationFailed
      if (!mayBeOfAnother || index + 1 >= count) throw toWebMQError(error, rules)
    }
  }
}

/** jose looks at this only if tokens have a largest age. A token of the future would outlive the revocation of its user's. */
function assertIssued(payload: JWTPayload, { currentDate = new Date(), clockTolerance }: JWTVerifyOptions): void {
  const latestS = Math.floor(currentDate.getTime() / 1000) + Number(clockTolerance ?? 0)
  if (payload.iat !== undefined && payload.iat > latestS)
    throw new errors.JWTClaimValidationFailed('"iat" is in the future', payload, 'iat', 'check_failed')
}

function toWebMQError(error: unknown, rules: JWTVerifyOptions): unknown {
  if (error instanceof WebMQError) return error
  if (error instanceof errors.JWTExpired)
    return new WebMQError('E_TOKEN_EXPIRED', { detail: expiryOf(error.payload, rules), cause: error })
  if (error instanceof errors.JOSEError) return invalidToken(describe(error), error)
  return new WebMQError('E_INTERNAL', { detail: 'the token could not be verified', cause: error })
}

/** When it was, by which clock: those of two machines may differ. jose has checked the signature, and that it is a number. */
function expiryOf({ exp = 0 }: JWTPayload, { currentDate = new Date() }: JWTVerifyOptions): string {
  // A number below 0 may be no date.
  const expiry = new Date(Math.max(0, exp) * 1000)
  const agoS = Math.round((currentDate.getTime() - expiry.getTime()) / 1000)
  return `${agoS} s ago, at ${expiry.toISOString()}; it is ${currentDate.toISOString()} at the server`
}

/** Describes the error without repeating text of the token, because that text is unverified. */
function describe(error: errors.JOSEError): string {
  if (error instanceof errors.JWTClaimValidationFailed) {
    const rule = error.reason === 'missing' && MAY_BE_MISSING.has(error.claim) ? 'is missing' : CLAIM_RULES[error.claim]
    return rule === undefined ? 'a claim is malformed' : `claim ${error.claim} ${rule}`
  }
  return DESCRIPTIONS[error.code] ?? 'malformed'
}

const CLAIM_RULES: Readonly<Record<string, string>> = {
  iss: 'is not the required issuer',
  aud: 'does not contain the required audience',
  nbf: 'is in the future or malformed',
  iat: 'is in the future or malformed',
  exp: 'is malformed',
  typ: 'of the header is not the required type',
}

/** Claims that only options of this server require. */
const MAY_BE_MISSING: ReadonlySet<string> = new Set(['exp', 'iat'])

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  [errors.JOSEAlgNotAllowed.code]: 'its algorithm is not allowed for the key',
  [errors.JOSENotSupported.code]: 'its algorithm is not supported',
  [errors.JWSSignatureVerificationFailed.code]: 'its signature does not match',
  [errors.JWKSNoMatchingKey.code]: 'no key matches it',
  [errors.JWKSMultipleMatchingKeys.code]: 'too many keys match it; it must name one (kid)',
  [errors.JWSInvalid.code]: 'not a signed JWT',
  [errors.JWTInvalid.code]: 'not a signed JWT with claims',
}
