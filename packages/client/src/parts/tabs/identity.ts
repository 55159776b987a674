/** Claims that differ between two tokens of one login: times, and the token's own id (RFC 7519 §4.1). */
const OF_ONE_TOKEN = new Set(['exp', 'iat', 'jti', 'nbf'])

/**
 * Names what a token stands for. Two tabs share a connection if this is equal: its rights are then those of each of their
 * tokens.
 *
 * JWTs are equal if their claims are, apart from times. Other tokens are equal only to themselves. Nothing is verified:
 * that is the server's task, and pages of one origin can read each other's tokens anyway.
 */
export function identityOf(token: string | undefined): string {
  if (token === undefined) return 'anonymous'
  try {
    const [, part = ''] = token.split('.')
    const claims: unknown = JSON.parse(atob(part.replaceAll('-', '+').replaceAll('_', '/')))
    if (typeof claims !== 'object' || claims === null) throw new TypeError('claims are an object')
    const kept = Object.entries(claims).filter(([name]) => !OF_ONE_TOKEN.has(name))
    return `claims ${JSON.stringify(kept.sort(([a], [b]) => (a < b ? -1 : 1)))}`
  } catch {
    // Not a JWT.
    return `token ${token}`
  }
}
