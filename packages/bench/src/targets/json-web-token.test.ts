import { describe, expect, it } from 'vitest'
import { isTokenValid, signToken } from './json-web-token.js'

const SECRET = 'a secret of the bench, with at least 32 bytes'
const NOW_S = 1_800_000_000

describe('a token of the bench', () => {
  const token = signToken(SECRET, 'bench', NOW_S)

  it('is valid for an hour', () => {
    expect(isTokenValid(SECRET, token, NOW_S)).toBe(true)
    expect(isTokenValid(SECRET, token, NOW_S + 3_599)).toBe(true)
    expect(isTokenValid(SECRET, token, NOW_S + 3_600)).toBe(false)
  })

  it('is not valid when anything in it is changed', () => {
    const [header = '', payload = '', signature = ''] = token.split('.')
    const other = signToken(SECRET, 'somebody', NOW_S).split('.')[1]
    expect(isTokenValid('another secret', token, NOW_S)).toBe(false)
    expect(isTokenValid(SECRET, `${header}.${other}.${signature}`, NOW_S)).toBe(false)
    for (const text of ['', 'a.b', `${header}.${payload}.`, `${header}.${payload}.AAAA`]) {
      expect(isTokenValid(SECRET, text, NOW_S)).toBe(false)
    }
  })
})
