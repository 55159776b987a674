import { createPublicKey, type KeyObject, webcrypto } from 'node:crypto'
import type { CryptoKey, JWTVerifyGetKey } from 'jose'
import { WebMQError } from 'webmq-client/protocol'
import { algorithmsOf, HMAC_ALGORITHMS, PUBLIC_KEY_ALGORITHMS } from './algorithms.js'
import type { JwtOptions } from './token-verifier.js'

/**
 * Finds the key that verifies a token; `undefined` for a key set.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when the key cannot be read.
 */
export function configuredKey({ secret, publicKey }: JwtOptions): JWTVerifyGetKey | undefined {
  if (secret !== undefined) return secretKey(Buffer.from(secret))
  if (publicKey === undefined) return undefined
  const key = parsePublicKey(publicKey)
  return () => key
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
 * The accepted signature algorithms: those of the key's type, limited to `jwt.algorithms`.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when the key cannot be read, or when an algorithm does not fit it.
 */
export function allowedAlgorithms(jwt: JwtOptions): readonly string[] {
  const possible = possibleAlgorithms(jwt)
  const wanted = jwt.algorithms ?? []
  if (wanted.length === 0) return possible
  const unfit = wanted.find((algorithm) => !possible.includes(algorithm))
  if (unfit === undefined) return wanted
  throw invalid(`jwt.algorithms: ${unfit} does not fit this key, which allows ${possible.join(', ')}`)
}

function possibleAlgorithms({ secret, publicKey }: JwtOptions): readonly string[] {
  if (secret !== undefined) return HMAC_ALGORITHMS
  if (publicKey === undefined) return PUBLIC_KEY_ALGORITHMS
  return algorithmsOf(parsePublicKey(publicKey))
}

function parsePublicKey(pem: string): KeyObject {
  if (pem.includes('PRIVATE KEY-----')) {
    throw invalid('jwt.publicKey: this is a private key; the server needs only the public key (openssl pkey -pubout)')
  }
  const key = readPublicKey(pem)
  if (algorithmsOf(key).length > 0) return key
  throw invalid('jwt.publicKey: not an RSA, P-256, P-384, P-521 or Ed25519 key')
}

function readPublicKey(pem: string): KeyObject {
  try {
    return createPublicKey(pem)
  } catch (cause) {
    throw new WebMQError('E_OPTION_INVALID', { detail: 'jwt.publicKey: not a public key in PEM format', cause })
  }
}

function invalid(detail: string): WebMQError {
  return new WebMQError('E_OPTION_INVALID', { detail })
}
