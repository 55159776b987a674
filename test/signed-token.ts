import { createHmac } from 'node:crypto'

/** Secret of the servers that take {@link signedToken}. */
export const TOKEN_SECRET = 'a secret of 32 bytes or more, as HS256 wants it'

/** A token as an app's own backend would make it: HS256, with the grants of WebMQ. */
export function signedToken(
  userId: string,
  lifeS: number,
  keys: readonly string[] = ['#'],
  others: { readonly jti?: string; readonly exp?: number } = {},
): string {
  const nowS = Date.now() / 1_000
  const claims = {
    sub: userId,
    iat: Math.floor(nowS),
    exp: nowS + lifeS,
    webmq: { grants: [{ keys, allow: ['listen', 'publish', 'presence'] }] },
    ...others,
  }
  const signed = `${base64url({ alg: 'HS256', typ: 'JWT' })}.${base64url(claims)}`
  return `${signed}.${createHmac('sha256', TOKEN_SECRET).update(signed).digest('base64url')}`
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
