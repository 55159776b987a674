import { createPublicKey, type KeyObject, webcrypto } from 'node:crypto'
import type { CryptoKey, JWTVerifyGetKey } from 'jose'
import { invalidOption } from '../base/invalid-option.js'
import type { JwtOptions } from './jwt-options.js'

export const HMAC_ALGORITHMS = ['HS256', 'HS384', 'HS512'] as const
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const
const RSA_PSS_ALGORITHMS = ['PS256', 'PS384', 'PS512'] as const
/** RFC 8037 calls it EdDSA; RFC 9864 uses the name of the curve. */
const ED25519_ALGORITHMS = ['EdDSA', 'Ed25519'] as const
/** RFC 7518 §3.4: each ES algorithm uses one curve. */
const EC_ALGORITHMS: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

const PUBLIC_KEY_ALGORITHMS: readonly string[] = [
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

/** A key, or a set of them, and the algorithms of tokens that it may verify. */
interface VerifyingKey {
  readonly algorithms: readonly string[]
  readonly find: JWTVerifyGetKey
}

/** The keys that may have signed a token, by its algorithm, in the order in which they are tried. */
export type KeyRing = ReadonlyMap<string, readonly JWTVerifyGetKey[]>

/**
 * Sorts the keys by algorithm. A secret is tried for HS tokens alone, a public key for tokens of its type alone, so nobody
 * can use the text of a public key as a shared secret (RFC 8725 §2.1). The key set comes last: it may have to be fetched.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when a key cannot be read, there is none, or an algorithm fits none.
 */
export function createKeyRing(jwt: JwtOptions, keySet: JWTVerifyGetKey | undefined): KeyRing {
  const keys = keysOf(jwt, keySet)
  if (keys.length === 0) throw invalidOption('jwt: needs a secret, a publicKey or a jwksUrl')
  return new Map(
    allowedAlgorithms(jwt, keys).map((algorithm) => [
      algorithm,
      keys.filter(({ algorithms }) => algorithms.includes(algorithm)).map(({ find }) => find),
    ]),
  )
}

function keysOf(jwt: JwtOptions, keySet: JWTVerifyGetKey | undefined): readonly VerifyingKey[] {
  const keys: VerifyingKey[] = secretsOf(jwt).map((secret) => ({
    algorithms: HMAC_ALGORITHMS,
    find: secretKey(Buffer.from(secret)),
  }))
  for (const pem of jwt.publicKey === undefined ? [] : [jwt.publicKey].flat()) {
    const key = parsePublicKey(pem)
    keys.push({ algorithms: algorithmsOf(key), find: () => key })
  }
  if (keySet !== undefined) keys.push({ algorithms: PUBLIC_KEY_ALGORITHMS, find: keySet })
  return keys
}

export function secretsOf({ secret }: JwtOptions): readonly string[] {
  return secret === undefined ? [] : [secret].flat()
}

/** WebCrypto wants a key per hash. Given the bytes, jose would import them for each token: twice the cost of a token. */
function secretKey(secret: Uint8Array): JWTVerifyGetKey {
  const keys = new Map<string, Promise<CryptoKey>>()
  // jose asks only for allowed algorithms, so there are at most three.
  return ({ alg: algorithm }) => {
    const known = keys.get(algorithm)
    if (known !== undefined) return known
    const hash = algorithm.replace('HS', 'SHA-')
    const key = webcrypto.subtle.importKey('raw', secret, { name: 'HMAC', hash }, false, ['verify'])
    keys.set(algorithm, key)
    return key
  }
}

/**
 * The accepted signature algorithms: those of the keys' types, limited to `jwt.algorithms`.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when a key cannot be read, or when an algorithm fits none.
 */
export function allowedAlgorithms(
  jwt: JwtOptions,
  keys = keysOf(jwt, jwt.jwksUrl === undefined ? undefined : noKey),
): readonly string[] {
  const possible = [...new Set(keys.flatMap(({ algorithms }) => algorithms))]
  const wanted = jwt.algorithms ?? []
  if (wanted.length === 0) return possible
  const unfit = wanted.find((algorithm) => !possible.includes(algorithm))
  if (unfit === undefined) return wanted
  throw invalidOption(`jwt.algorithms: ${unfit} fits no key; the keys allow ${possible.join(', ')}`)
}

/** Stands for a key set of which only the algorithms matter. */
function noKey(): never {
  throw new Error('a key was asked of a set that is not there')
}

function parsePublicKey(pem: string): KeyObject {
  if (pem.includes('PRIVATE KEY-----')) {
    throw invalidOption(
      'jwt.publicKey: this is a private key; the server needs only the public key (openssl pkey -pubout)',
    )
  }
  const key = readPublicKey(pem)
  if (algorithmsOf(key).length > 0) return key
  throw invalidOption('jwt.publicKey: not an RSA, P-256, P-384, P-521 or Ed25519 key')
}

function readPublicKey(pem: string): KeyObject {
  try {
    return createPublicKey(pem)
  } catch (cause) {
    throw invalidOption('jwt.publicKey: not a public key in PEM format', cause)
  }
}
