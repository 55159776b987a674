import { createHmac, generateKeyPairSync, sign } from 'node:crypto'

const EVERYTHING = [{ keys: ['#'], allow: ['listen', 'publish'] }]
const LIFETIME_S = 3_600

/** Claims of a token that grants everything. */
export function claimsOf(userId: string): Record<string, unknown> {
  const nowS = Math.floor(Date.now() / 1_000)
  return { sub: userId, iat: nowS, exp: nowS + LIFETIME_S, webmq: { grants: EVERYTHING } }
}

/** A token with these claims, signed with HS256 (RFC 7515). */
export function tokenOf(secret: string, claims: object, header: object = { alg: 'HS256', typ: 'JWT' }): string {
  const body = `${encode(header)}.${encode(claims)}`
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`
}

/** Tokens that the server must refuse. */
export function forgedTokens(secret: string): string[] {
  const claims = claimsOf('eve')
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = publicKey.export({ format: 'jwk' })
  const ecHeader = { alg: 'ES256', typ: 'JWT', jwk, kid: 'eve', jku: 'http://127.0.0.1:9/keys' }
  const ecBody = `${encode(ecHeader)}.${encode(claims)}`
  const ecSignature = sign('sha256', Buffer.from(ecBody), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return [
    `${encode({ alg: 'none' })}.${encode(claims)}.`,
    tokenOf(secret, claims, { alg: 'none' }),
    tokenOf('another secret of 32 bytes or more', { ...claims, iss: 'https://issuer.example' }),
    tokenOf(secret, claims, { alg: 'HS512' }),
    tokenOf(secret, claims, { alg: 'RS256' }),
    tokenOf(secret, claims, { alg: 'HS256', crit: ['exp'] }),
    tokenOf(secret, { ...claims, exp: 1 }),
    tokenOf(secret, { ...claims, nbf: 9_999_999_999 }),
    `${ecBody}.${ecSignature.toString('base64url')}`,
    `${encode({ alg: 'HS256' })}.${encode(claims)}.${'A'.repeat(43)}`,
  ]
}

/** Users whose names fit into no header, id or line of a broker. */
export const STRANGE_USERS: readonly string[] = [
  '漢'.repeat(40),
  'josé',
  'a\r\nSUB injected 1\r\n',
  'nul\u0000byte',
  'x'.repeat(255),
  'x'.repeat(4_000),
  '\u{1f600}'.repeat(64),
  '../../etc',
  '\ud800',
]

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
