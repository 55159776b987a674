import { describe, expect, it } from 'vitest'
import { withAdvice } from './advice.js'

const tokenOf = (claims: unknown) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`
const advised = (code: string, message: string, token?: string) => {
  const error = withAdvice({ verb: 'error', code, message, retryable: false } as never, token)
  return error.verb === 'error' ? error.message : ''
}

describe('an error of the server', () => {
  it.each([
    [
      { sub: 'ada', webmq: { grants: [{ keys: ['lobby.#', 'café'], allow: ['listen'] }] } },
      'ada may listen: lobby.#, café',
    ],
    [{ webmq: { grants: [{ keys: ['a'], allow: ['publish'] }] } }, 'a token without `sub` may listen nothing'],
    [
      { sub: 'b', webmq: { grants: [{ keys: [1, 2, 3, 4, 5, 6, 7], allow: ['listen'] }] } },
      'b may listen: 1, 2, 3, 4, 5 and 2 more',
    ],
    [{ sub: 'c', webmq: { grants: [null, 5, { allow: 'listen' }] } }, 'c may listen nothing'],
  ])('says who is refused, and what its token grants: %j', (claims, text) => {
    const message = 'not granted to this identity: listen chat.a'
    expect(advised('E_FORBIDDEN', message, tokenOf(claims))).toBe(`${message}; by the token of its login, ${text}`)
  })

  it('says that there is no token, and nothing of one that is no JWT', () => {
    expect(advised('E_FORBIDDEN', 'no: publish a')).toBe('no: publish a; the client has no token')
    for (const token of ['opaque', 'a.b.c', 'a.bnVsbA.c', `a.${btoa('5')}.c`]) {
      expect(advised('E_FORBIDDEN', 'no: publish a', token)).toBe('no: publish a')
    }
    expect(advised('E_FORBIDDEN', 'another stream', tokenOf({ sub: 'a' }))).toBe('another stream')
  })

  it('says what to do about limits', () => {
    expect(advised('E_LISTEN_LIMIT', 'a: at most 128')).toContain('a: at most 128; does each effect')
    expect(advised('E_PAYLOAD_TOO_LARGE', 'x')).toContain('--max-payload')
    expect(advised('E_RATE_LIMIT', 'x')).toBe('x')
  })
})
