/**
 * How tokens are verified. Set at least one of `secret`, `publicKey` and `jwksUrl`. A token is valid if one of the keys
 * that fit its algorithm has signed it, so keys can rotate.
 */
export interface JwtOptions {
  /** Shared secret, or up to eight; verifies HS256, HS384 and HS512. */
  readonly secret?: string | readonly string[] | undefined
  /** PEM text of a public key (RSA, EC, Ed25519), or up to eight; verifies the algorithms of its type, never HS. */
  readonly publicKey?: string | readonly string[] | undefined
  /** Address of a JSON Web Key Set; verifies all algorithms except HS. */
  readonly jwksUrl?: string | undefined
  /** Required `iss`. */
  readonly issuer?: string | undefined
  /** Required entry of `aud`. */
  readonly audience?: string | undefined
  /** Allowed clock difference, in seconds; default 5. */
  readonly clockToleranceS?: number | undefined
  /** Whether tokens without `exp` are refused; default false: they are valid until they are revoked. */
  readonly requireExp?: boolean | undefined
  /** Refuses tokens without `iat`, and ends older ones, whatever their `exp`, in seconds; default: none. */
  readonly maxAgeS?: number | undefined
  /** Required `typ` of the header, such as `at+jwt` (RFC 9068); default: any or none. */
  readonly type?: string | undefined
  /** The accepted algorithms; empty or absent: all that fit a key. */
  readonly algorithms?: readonly string[] | undefined
}
