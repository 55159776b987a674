import { createHmac } from 'node:crypto'

/**
 * A token as a backend makes it: HS256, for an hour.
 * @param {string} user
 * @param {readonly { keys: readonly string[], allow: readonly string[] }[]} grants
 * @param {string} secret Of 32 bytes or more.
 */
export function signedToken(user, grants, secret) {
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { sub: user, exp: Math.floor(Date.now() / 1_000) + 3_600, webmq: { grants } }
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}
