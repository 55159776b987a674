import { createHmac, timingSafeEqual } from 'node:crypto'

const HEADER = encode({ alg: 'HS256', typ: 'JWT' })

/** A token for one user that is valid for an hour (RFC 7515, HS256). @param grants Default: everything. */
export function signToken(
  secret: string,
  userId: string,
  nowS: number,
  grants: readonly object[] = EVERYTHING,
): string {
  const body = `${HEADER}.${encode({ sub: userId, iat: nowS, exp: nowS + 3_600, webmq: { grants } })}`
  return `${body}.${signature(secret, body).toString('base64url')}`
}

const EVERYTHING = [{ keys: ['#'], allow: ['listen', 'publish'] }]

/** Whether a token has this secret's signature and has not expired, for targets without their own check. */
export function isTokenValid(secret: string, token: string, nowS: number): boolean {
  const [header, payload, given] = token.split('.')
  if (header === undefined || payload === undefined || given === undefined) return false
  const actual = Buffer.from(given, 'base64url')
  const expected = signature(secret, `${header}.${payload}`)
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return false
  const { alg } = decode(header)
  const { exp } = decode(payload)
  return alg === 'HS256' && typeof exp === 'number' && exp > nowS
}

function signature(secret: string, body: string): Buffer {
  return createHmac('sha256', secret).update(body).digest()
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function decode(part: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}
