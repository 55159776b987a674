import type { KeyObject } from 'node:crypto'

/** Algorithms of a shared secret. */
export const HMAC_ALGORITHMS = ['HS256', 'HS384', 'HS512'] as const
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const
const RSA_PSS_ALGORITHMS = ['PS256', 'PS384', 'PS512'] as const
/** RFC 8037 names it EdDSA; RFC 9864 names the curve. */
const ED25519_ALGORITHMS = ['EdDSA', 'Ed25519'] as const
/** RFC 7518 §3.4: each ES algorithm goes with one curve. */
const EC_ALGORITHMS: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/** Algorithms of public keys. */
export const PUBLIC_KEY_ALGORITHMS: readonly string[] = [
  ...RSA_ALGORITHMS,
  ...Object.values(EC_ALGORITHMS),
  ...ED25519_ALGORITHMS,
]

/** Whether a token may be signed with this algorithm at all; `none` may not. */
export function isAlgorithm(name: string): boolean {
  return PUBLIC_KEY_ALGORITHMS.includes(name) || HMAC_ALGORITHMS.some((algorithm) => algorithm === name)
}

/** What {@link isAlgorithm} takes, in words. */
export function describeAllowedAlgorithms(): string {
  return [...HMAC_ALGORITHMS, ...PUBLIC_KEY_ALGORITHMS].join(', ')
}

/**
 * Algorithms that an asymmetric key, public or private, can be used with; empty when there is none.
 * A key is only ever used with these: a token that names another algorithm is refused before its signature is looked at,
 * so that nobody can pass off the text of a public key as a shared secret (RFC 8725 §2.1).
 */
export function algorithmsOf(key: KeyObject): readonly string[] {
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return RSA_ALGORITHMS
    case 'rsa-pss':
      return RSA_PSS_ALGORITHMS
    case 'ed25519':
      return ED25519_ALGORITHMS
    case 'ec': {
      const algorithm = EC_ALGORITHMS[key.asymmetricKeyDetails?.namedCurve ?? '']
      return algorithm === undefined ? [] : [algorithm]
    }
    default:
      return []
  }
}
