import { describeAllowedAlgorithms, isAlgorithm } from '../../../kernel/identity/keys.js'
import { integer, list, text, toggle } from '../spec.js'
import { isHttpUrl, longEnough, notEmpty } from './checks.js'

/** A token costs one verification per key that fits its algorithm. */
const MAX_KEYS = 8

export const TOKENS_OPTIONS = {
  'jwt.secret': list({
    takesText: true,
    // A secret may contain any character.
    separator: 'none',
    maxCount: MAX_KEYS,
    placeholder: 'secret',
    isSecret: true,
    fromFile: 'file-flag',
    reloadable: true,
    check: (value) =>
      value.includes('-----BEGIN') ? 'a shared secret; use jwt.publicKey for a PEM key' : longEnough(value),
    help: 'Shared secret that signs tokens (HS256, HS384, HS512); use 32 bytes or more.',
    detail:
      'With any key, connections may do nothing before they send a valid token. `openssl rand -base64 32` creates a secret. Anyone with a token can find a short secret by trying, so fewer than 16 bytes are refused. With several, a token may be signed with any of them, so a secret can rotate; [security.md](security.md#rotating-keys) has the steps. The variable holds one secret, the one for files several names, separated by commas.',
  }),
  'jwt.publicKey': list({
    takesText: true,
    maxCount: MAX_KEYS,
    placeholder: 'pem|file',
    fromFile: 'pem',
    reloadable: true,
    check: notEmpty,
    help: 'Public key that verifies tokens: RSA, EC or Ed25519.',
    detail:
      'With several, a token may be signed with any of them. Secrets, public keys and a key set may be used together: only the keys that fit the algorithm of a token are tried.',
  }),
  'jwt.jwksUrl': text({
    flag: 'jwks',
    placeholder: 'url',
    reloadable: true,
    check: (value) => (isHttpUrl(value) ? undefined : 'an http:// or https:// address'),
    help: 'Address of a JSON Web Key Set that verifies tokens.',
    detail:
      'The set is fetched again every 10 minutes, and when a token names an unknown key, so keys can rotate. When the address does not answer, or with no usable key, the last good set stays in use for a day.',
  }),
  'jwt.issuer': text({
    flag: 'issuer',
    placeholder: 'iss',
    reloadable: true,
    check: notEmpty,
    help: 'Accept only tokens with this `iss`.',
    detail: 'Needed when the same key also signs tokens of other issuers.',
  }),
  'jwt.audience': text({
    flag: 'audience',
    placeholder: 'aud',
    reloadable: true,
    check: notEmpty,
    help: 'Accept only tokens whose `aud` contains this.',
  }),
  'jwt.clockToleranceS': integer({
    flag: 'clock-tolerance',
    reloadable: true,
    range: [0, 300],
    default: 5,
    help: 'Allowed clock difference between this machine and the issuer.',
  }),
  'jwt.requireExp': toggle({
    reloadable: true,
    help: 'Refuse tokens without `exp`.',
    detail: 'Such a token is valid until it is revoked, or its key is removed.',
  }),
  'jwt.maxAgeS': integer({
    reloadable: true,
    range: [1, 31_536_000],
    defaultText: 'none',
    help: 'Refuse tokens without `iat`, and those that were issued longer ago than this.',
    detail:
      'Bounds what an issuer with long lifetimes allows: a session ends at this age of its token, or at `exp` if that is sooner, unless the client sends a new one.',
  }),
  'jwt.type': text({
    placeholder: 'typ',
    reloadable: true,
    check: notEmpty,
    help: 'Accept only tokens with this `typ` in their header, such as `at+jwt`.',
    detail:
      'Needed when the key also signs tokens for other purposes, such as ID tokens or security events (RFC 8725 §3.11). `application/` may be left out.',
  }),
  'jwt.algorithms': list({
    flag: 'jwt-algorithm',
    reloadable: true,
    placeholder: 'alg',
    defaultText: 'all that fit the key',
    check: (value) => (isAlgorithm(value) ? undefined : describeAllowedAlgorithms()),
    help: 'Accept only these signature algorithms.',
    detail: 'The type of the key limits them further: a public key never verifies HS tokens.',
  }),
}
