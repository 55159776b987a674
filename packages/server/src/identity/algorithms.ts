import type { KeyObject } from 'node:crypto'

export const HMAC_ALGORITHMS = ['HS256', 'HS384', 'HS512'] as const
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const
const RSA_PSS_ALGORITHMS = ['PS256', 'PS384', 'PS512'] as const
/** RFC 8037 calls it EdDSA; RFC 9864 uses the name of the curve. */
const ED25519_ALGORITHMS = ['EdDSA', 'Ed25519'] as const
/** RFC 7518 §3.4: each ES algorithm uses one curve. */
const EC_ALGORITHMS: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

export const PUBLIC_KEY_ALGORITHMS: readonly string[] = [
  ...RSA_ALGORITHMS,
  ...Object.values(EC_ALGORITHMS),
  ...ED25519_ALGORITHMS,
]

/** Whether any key may use this algorithm; `none` is not one of them. */
export function isAlgorithm(name: string): boolean {
  return PUBLIC_KEY_ALGORITHMS.includes(name) || HMAC_ALGORITHMS.some((algorithm) => algorithm === name)
}

export function describeAllowedAlgorithms(): string {
  return [...HMAC_ALGORITHMS, ...PUBLIC_KEY_ALGORITHMS].join(', ')
}

/**
 * Algorithms of an asymmetric key, public or private; empty when none is supported.
 * A token with another algorithm is refused before its signature is checked. So nobody can use the text of a public key
 * as a shared secret (RFC 8725 §2.1).
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
