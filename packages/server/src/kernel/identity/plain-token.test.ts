import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { type JWTVerifyOptions, jwtVerify } from 'jose'
import { expect, it } from 'vitest'
import { PlainTokens } from './plain-token.js'

const SECRETS = [
  'the first of two secrets, of more than 32 bytes',
  'the second of two secrets, of more than 32 bytes',
] as const
const NOW_S = 1_800_000_000
const RULES = { issuer: 'https://issuer.example', audience: 'webmq', clockToleranceS: 5 }
const STRICT = { ...RULES, requireExp: true, maxAgeS: 3, type: 'jwt' }
const ALGORITHMS = ['HS256', 'HS512']
/** A million in ten minutes: `WEBMQ_TEST_RUNS=1000000`. */
const RUN_COUNT = Number(process.env.WEBMQ_TEST_RUNS ?? 5_000)

const CLAIMS = {
  sub: 'ann',
  iss: RULES.issuer,
  aud: RULES.audience,
  iat: NOW_S,
  exp: NOW_S + 60,
  webmq: { grants: [] },
}

const plain = new PlainTokens({ secret: SECRETS, algorithms: ALGORITHMS }, RULES)

function signed(
  header: string | Buffer,
  payload: string | Buffer,
  secret: string = SECRETS[0],
  hash = 'sha256',
): string {
  const text = [header, payload].map((part) => Buffer.from(part).toString('base64url')).join('.')
  return `${text}.${createHmac(hash, secret).update(text).digest('base64url')}`
}

const strict = new PlainTokens({ secret: SECRETS, algorithms: ALGORITHMS }, STRICT)
const verifyPlain = (token: string) => plain.verify(token, NOW_S * 1000 + 999)

/** The claims that jose accepts with one of the secrets; `undefined` when it accepts the token with none. */
async function verifyByJose(token: string, more: JWTVerifyOptions = {}): Promise<unknown> {
  for (const secret of SECRETS) {
    try {
      const { payload } = await jwtVerify(token, Buffer.from(secret), {
        algorithms: ALGORITHMS,
        issuer: RULES.issuer,
        audience: RULES.audience,
        clockTolerance: RULES.clockToleranceS,
        currentDate: new Date(NOW_S * 1000 + 999),
        ...more,
      })
      return payload
    } catch {
      // The other secret may have signed it.
    }
  }
  return undefined
}

const HEADER = JSON.stringify({ alg: 'HS256', typ: 'JWT' })

it.each([
  ['as jose signs them', signed('{"alg":"HS256"}', JSON.stringify(CLAIMS))],
  ['with a type and a key id', signed('{"alg":"HS256","typ":"JWT","kid":"1"}', JSON.stringify(CLAIMS))],
  ['of another secret', signed(HEADER, JSON.stringify(CLAIMS), SECRETS[1])],
  ['of another hash', signed('{"alg":"HS512"}', JSON.stringify(CLAIMS), SECRETS[0], 'sha512')],
  ['for several audiences', signed(HEADER, JSON.stringify({ ...CLAIMS, aud: ['other', 'webmq'] }))],
  ['that end within the tolerance', signed(HEADER, JSON.stringify({ ...CLAIMS, exp: NOW_S - 4 }))],
])('accepts tokens %s', async (_, token) => {
  expect(verifyPlain(token)).toBeDefined()
  expect(verifyPlain(token)).toEqual(await verifyByJose(token))
})

it.each([
  ['whose hash is not allowed', signed('{"alg":"HS384"}', JSON.stringify(CLAIMS), SECRETS[0], 'sha384')],
  ['that must be understood', signed('{"alg":"HS256","crit":["b64"],"b64":false}', JSON.stringify(CLAIMS))],
  ['without an algorithm', signed('{}', JSON.stringify(CLAIMS))],
  ['of nobody', `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.`],
  ['that have ended', signed(HEADER, JSON.stringify({ ...CLAIMS, exp: NOW_S - 5 }))],
  ['of the future', signed(HEADER, JSON.stringify({ ...CLAIMS, iat: NOW_S + 6 }))],
  ['of another issuer', signed(HEADER, JSON.stringify({ ...CLAIMS, iss: 'other' }))],
  ['with bytes that are no text', signed(HEADER, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))],
  ['that are padded', `${signed(HEADER, JSON.stringify(CLAIMS))}=`],
])('leaves tokens %s to jose', (_, token) => {
  expect(verifyPlain(token)).toBeUndefined()
})

it('takes no token that is signed with nothing, if the secret is empty', () => {
  const empty = new PlainTokens({ secret: '' }, { ...RULES, issuer: undefined, audience: undefined })
  expect(empty.verify(signed(HEADER, '{}', ''), 0)).toBeUndefined()
})

/** What is plain, and now and then what is odd. */
const usually = (plain: unknown, ...odd: readonly unknown[]) =>
  fc.oneof({ weight: 8, arbitrary: fc.constant(plain) }, { weight: 1, arbitrary: fc.constantFrom(...odd) })
const usuallyNumber = (plain: number) =>
  fc.oneof(
    { weight: 8, arbitrary: usually(plain, undefined, '1800000000', null, true, [], {}, 1e308, -1, 0.5) },
    { weight: 1, arbitrary: fc.integer({ min: NOW_S - 10, max: NOW_S + 10 }) },
  )
const members = fc.record({
  alg: usually('HS256', 'HS512', 'HS384', 'none', 'hs256', 'RS256', '', null, 256, undefined),
  typ: usually('JWT', undefined, 'at+jwt', 1, null),
  kid: usually(undefined, '1', '\u{1F511}'),
  cty: usually(undefined, 'JWT', ''),
  crit: usually(undefined, [], ['b64'], ['exp'], 'b64'),
  b64: usually(undefined, true, false, 'no'),
  zip: usually(undefined, 'DEF'),
})
const claims = fc.record({
  sub: fc.string({ unit: 'grapheme' }),
  iss: usually(RULES.issuer, 'other', [RULES.issuer], null, undefined),
  aud: usually(RULES.audience, ['webmq'], ['a', 'webmq'], [['webmq']], 'other', [], {}, undefined),
  iat: usuallyNumber(NOW_S),
  nbf: usuallyNumber(NOW_S),
  exp: usuallyNumber(NOW_S + 60),
})
/** Changes the text of a part before it is signed, so that the signature fits what is odd. */
const rewrite = fc.constantFrom<(text: string) => string | Buffer>(
  ...new Array<(text: string) => string>(30).fill((text) => text),
  (text) => ` ${text}\n`,
  (text) => `\u{FEFF}${text}`,
  (text) => `[${text}]`,
  (text) => text.slice(0, -1),
  (text) => text.replace('{', '{"exp":1,"alg":"none",'),
  (text) => text.replace(/\}$/, ',"exp":1,"alg":"none"}'),
  (text) => Buffer.concat([Buffer.from(text), Buffer.from([0xc3])]),
  (text) => Buffer.from(text, 'utf16le'),
)
/** Changes the signed token. */
const tamper = fc.oneof(
  { weight: 8, arbitrary: fc.constant((token: string) => token) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.nat(), fc.constantFrom('A', '_', '=', '+', '/', ' ', '.', 'é', '\u{1F600}', ''))
      .map(([at, text]) => (token: string) => {
        const index = at % token.length
        return token.slice(0, index) + text + token.slice(index + 1)
      }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      (token: string) => `${token}A`,
      (token: string) => `${token}=`,
      (token: string) => token.replaceAll('_', '/').replaceAll('-', '+'),
      (token: string) => token.slice(0, -1),
      (token: string) => `${token}.${token}`,
    ),
  },
)

it.each([
  ['the usual rules', plain, {}],
  ['strict ones', strict, { requiredClaims: ['exp'], maxTokenAge: STRICT.maxAgeS, typ: STRICT.type }],
])(
  'by %s, accepts nothing that jose refuses, and reads the same claims',
  { timeout: 900_000 },
  async (_name, one, more) => {
    let acceptedCount = 0
    const token = fc
      .tuple(members, claims, rewrite, rewrite, fc.constantFrom(...SECRETS, 'a stranger'), tamper)
      .map(([header, payload, rewriteHeader, rewritePayload, secret, change]) => {
        const hash = header.alg === 'HS512' ? 'sha512' : 'sha256'
        return change(
          signed(rewriteHeader(JSON.stringify(header)), rewritePayload(JSON.stringify(payload)), secret, hash),
        )
      })
    await fc.assert(
      fc.asyncProperty(token, async (candidate) => {
        const accepted = one.verify(candidate, NOW_S * 1000 + 999)
        if (accepted === undefined) return
        acceptedCount++
        expect(await verifyByJose(candidate, more)).toEqual(accepted)
      }),
      { numRuns: RUN_COUNT },
    )
    expect(acceptedCount).toBeGreaterThan(RUN_COUNT / 20)
  },
)
