import { createHmac, createSecretKey } from 'node:crypto'
import { errors, type JWTVerifyOptions, jwtVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import { createSharedSecretVerifier } from './shared-secret.js'

const KEY = createSecretKey(
  'a shared secret of more than 64 bytes, so that it does for HS512 as well, see RFC 7518',
  'utf8',
)
const NOW_S = 1_800_000_000
const RULES: JWTVerifyOptions = {
  algorithms: ['HS256', 'HS384'],
  issuer: 'https://id.example',
  audience: 'webmq',
  clockTolerance: 5,
  currentDate: new Date(NOW_S * 1_000),
}
const verify = createSharedSecretVerifier(KEY, {
  algorithms: ['HS256', 'HS384'],
  issuer: 'https://id.example',
  audience: 'webmq',
  clockToleranceS: 5,
})
const CLAIMS = { iss: 'https://id.example', aud: 'webmq', sub: 'alice', exp: NOW_S + 60 }

const encode = (value: string | Buffer) => Buffer.from(value).toString('base64url')
const signatureOf = (body: string, hash = 'sha256') => createHmac(hash, KEY).update(body).digest('base64url')

/** A token that is signed as it should be, whatever its parts are. */
function signed(header: unknown, payload: unknown, hash?: string): string {
  const body = `${encode(JSON.stringify(header))}.${encode(JSON.stringify(payload))}`
  return `${body}.${signatureOf(body, hash)}`
}

function signedText(header: string, payload: string): string {
  return `${header}.${payload}.${signatureOf(`${header}.${payload}`)}`
}

const HEADER = encode('{"alg":"HS256"}')
const PAYLOAD = encode(JSON.stringify(CLAIMS))
const GOOD = signedText(HEADER, PAYLOAD)

/** What jose makes of a token; `undefined`: it is refused. */
async function verdictOfJose(token: string): Promise<unknown> {
  try {
    return (await jwtVerify(token, KEY, RULES)).payload
  } catch (error) {
    expect(error).toBeInstanceOf(errors.JOSEError)
    return undefined
  }
}

const verdictOfShortWay = (token: string) => verify(token, NOW_S * 1_000)

describe('the short way for shared secrets', () => {
  it.each([
    ['HS256', GOOD],
    ['HS384', signed({ alg: 'HS384', typ: 'JWT' }, CLAIMS, 'sha384')],
    ['more members than are known', signed({ alg: 'HS256', kid: 'k', b64: true, extra: {} }, { ...CLAIMS, x: [1] })],
    ['text that is not ASCII', signed({ alg: 'HS256', ü: 'ü' }, { ...CLAIMS, sub: '\u{1f600}' })],
  ])('takes what jose takes: %s', async (_name, token) => {
    expect(verdictOfShortWay(token)).toMatchObject({ iss: CLAIMS.iss })
    expect(verdictOfShortWay(token)).toEqual(await verdictOfJose(token))
  })

  it.each([
    ['another issuer', signed({ alg: 'HS256' }, { ...CLAIMS, iss: 'https://evil.example' })],
    ['no issuer', signed({ alg: 'HS256' }, { ...CLAIMS, iss: undefined })],
    ['another audience', signed({ alg: 'HS256' }, { ...CLAIMS, aud: ['a', 'b'] })],
    ['expired', signed({ alg: 'HS256' }, { ...CLAIMS, exp: NOW_S - 6 })],
    ['not valid yet', signed({ alg: 'HS256' }, { ...CLAIMS, nbf: NOW_S + 6 })],
    ['an exp that is no number', signed({ alg: 'HS256' }, { ...CLAIMS, exp: '2100-01-01' })],
    ['an iat that is no number', signed({ alg: 'HS256' }, { ...CLAIMS, iat: '2000-01-01' })],
    ['a payload that is a list', signed({ alg: 'HS256' }, [CLAIMS])],
    ['a payload that is a text', signed({ alg: 'HS256' }, 'text')],
    ['a payload that is null', signed({ alg: 'HS256' }, null)],
    ['a payload that is no JSON', signedText(HEADER, encode('{'))],
    ['a payload that is no UTF-8', signedText(HEADER, encode(Buffer.from('{"sub":"\xff"}', 'latin1')))],
    ['nothing', ''],
    ['no dots', 'hello'],
    ['one dot', signedText(HEADER, '').slice(0, HEADER.length + 4)],
    ['only dots', '..'],
    ['a part too many', `${GOOD}.`],
    ['five parts', `${GOOD}.a.b`],
    ['no signature', `${HEADER}.${PAYLOAD}.`],
    [
      'a changed payload',
      `${HEADER}.${encode(JSON.stringify({ ...CLAIMS, sub: 'admin' }))}.${signatureOf(`${HEADER}.${PAYLOAD}`)}`,
    ],
    [
      'another secret',
      `${HEADER}.${PAYLOAD}.${createHmac('sha256', 'other').update(`${HEADER}.${PAYLOAD}`).digest('base64url')}`,
    ],
    ['a signature cut short', GOOD.slice(0, -1)],
    ['a signature that goes on', `${GOOD}A`],
    ['a signature of another hash', signed({ alg: 'HS256' }, CLAIMS, 'sha384')],
    ['an algorithm that is not allowed', signed({ alg: 'HS512' }, CLAIMS, 'sha512')],
    ['no algorithm', signed({}, CLAIMS)],
    ['alg none', signed({ alg: 'none' }, CLAIMS)],
    ['alg in small letters', signed({ alg: 'hs256' }, CLAIMS)],
    ['a list of algorithms', signed({ alg: ['HS256'] }, CLAIMS)],
    ['an algorithm that every object has', signed({ alg: 'constructor' }, CLAIMS)],
    ['a critical extension', signed({ alg: 'HS256', crit: ['exp'], exp: 1 }, CLAIMS)],
    ['an unencoded payload', signed({ alg: 'HS256', crit: ['b64'], b64: false }, CLAIMS)],
    ['an empty list of extensions', signed({ alg: 'HS256', crit: [] }, CLAIMS)],
    ['a header that is a list', signedText(encode('["HS256"]'), PAYLOAD)],
    ['a header that is no JSON', signedText(encode('alg'), PAYLOAD)],
    ['a header that is no UTF-8', signedText(encode(Buffer.from('{"alg":"HS256","x":"\xff"}', 'latin1')), PAYLOAD)],
    ['a header with a foreign letter', signedText(`${HEADER}!`, PAYLOAD)],
    [
      'a header in the other alphabet',
      signedText(Buffer.from('{"alg":"HS256","x":"\u00ff\u00ff\u00fe~~"}').toString('base64'), PAYLOAD),
    ],
    ['a letter whose low byte fits', GOOD.slice(0, -1) + String.fromCharCode(0x100 + GOOD.charCodeAt(GOOD.length - 1))],
  ])('takes nothing that jose refuses: %s', async (_name, token) => {
    expect(verdictOfShortWay(token)).toBeUndefined()
    expect(await verdictOfJose(token)).toBeUndefined()
  })

  it('takes the same as jose of whatever claims are signed', async () => {
    const values = [undefined, null, '', 'webmq', CLAIMS.iss, [], ['webmq'], ['other'], [['webmq']], {}, true]
    const times = [NOW_S - 6, NOW_S - 5, NOW_S - 4, NOW_S, NOW_S + 5, NOW_S + 6, 0.5 + NOW_S - 5, -1]
    const claims: object[] = [{}]
    for (const claim of ['iss', 'aud', 'iat', 'nbf', 'exp'])
      for (const value of [...values, ...times]) claims.push({ ...CLAIMS, [claim]: value })
    const taken = new Set<boolean>()
    for (const payload of claims) {
      const token = signed({ alg: 'HS256' }, payload)
      const verdict = verdictOfShortWay(token)
      taken.add(verdict !== undefined)
      expect(verdict, JSON.stringify(payload)).toEqual(await verdictOfJose(token))
    }
    expect(taken.size).toBe(2)
  })

  it('looks at every header anew that is not the last one', () => {
    for (const header of [
      { alg: 'HS256' },
      { alg: 'HS512' },
      { alg: 'HS384' },
      { alg: 'HS256', crit: ['x'] },
      { alg: 'HS256' },
    ]) {
      const hash = header.alg.replace('HS', 'sha')
      const isTaken = header.alg !== 'HS512' && !('crit' in header)
      expect(verdictOfShortWay(signed(header, CLAIMS, hash)) !== undefined).toBe(isTaken)
      expect(verdictOfShortWay(`${signed(header, CLAIMS, hash)}x`)).toBeUndefined()
    }
  })
})
