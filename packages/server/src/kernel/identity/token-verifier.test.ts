import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { type JWTPayload, SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { ERRORS, type WebMQError } from 'webmq-client/protocol'
import type { JwtOptions } from './jwt-options.js'
import { Revocations } from './revocations.js'
import { tokenFailureOf } from './token-failure.js'
import { createTokenVerifier, ReloadableVerifier, type TokenVerifier } from './token-verifier.js'

const SECRET = 'a shared secret of more than 64 bytes, so that it does for HS512 as well, see RFC 7518'
const NOW_S = 1_800_000_000
const WEBMQ = { grants: [{ keys: ['chat.#'], allow: ['listen', 'publish'] }] }

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' })
const ed25519 = generateKeyPairSync('ed25519')

const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString()

function sign(payload: JWTPayload, alg: string, key: KeyObject | Uint8Array): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg }).sign(key)
}

const signHs = (payload: JWTPayload, alg = 'HS256'): Promise<string> => sign(payload, alg, Buffer.from(SECRET))

/** A token whose parts are as given, signed with a secret by hand: jose would refuse to make it. */
function forge(header: object, payload: object, secret: string): string {
  const body = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`
}

function createVerifier(jwt: JwtOptions): TokenVerifier {
  return createTokenVerifier(jwt, { now: () => NOW_S * 1000 })
}

async function errorOf(verifier: TokenVerifier, token: string): Promise<WebMQError> {
  const answer = (async () => await verifier.verify(token))()
  return await answer.then(
    () => {
      throw new Error('the token was accepted')
    },
    (error: WebMQError) => error,
  )
}

describe('a verifier', () => {
  it('turns a token into an identity', async () => {
    const token = await signHs({ sub: 'alice', exp: NOW_S + 60, webmq: WEBMQ })
    expect(await createVerifier({ secret: SECRET }).verify(token)).toEqual({
      userId: 'alice',
      grants: WEBMQ.grants,
      expiresAtMs: (NOW_S + 60) * 1000,
    })
  })

  it('grants nothing to a token that claims nothing, and names nobody', async () => {
    expect(await createVerifier({ secret: SECRET }).verify(await signHs({}))).toEqual({ grants: [] })
  })

  it.each([
    ['HS256', { secret: SECRET }, Buffer.from(SECRET)],
    ['HS384', { secret: SECRET }, Buffer.from(SECRET)],
    ['HS512', { secret: SECRET }, Buffer.from(SECRET)],
    ['RS256', { publicKey: pemOf(rsa.publicKey) }, rsa.privateKey],
    ['RS384', { publicKey: pemOf(rsa.publicKey) }, rsa.privateKey],
    ['RS512', { publicKey: pemOf(rsa.publicKey) }, rsa.privateKey],
    ['PS256', { publicKey: pemOf(rsa.publicKey) }, rsa.privateKey],
    ['PS384', { publicKey: pemOf(rsa.publicKey) }, rsa.privateKey],
    ['PS512', { publicKey: pemOf(rsa.publicKey) }, rsa.privateKey],
    ['ES256', { publicKey: pemOf(p256.publicKey) }, p256.privateKey],
    ['ES384', { publicKey: pemOf(p384.publicKey) }, p384.privateKey],
    ['ES512', { publicKey: pemOf(p521.publicKey) }, p521.privateKey],
    ['EdDSA', { publicKey: pemOf(ed25519.publicKey) }, ed25519.privateKey],
    ['Ed25519', { publicKey: pemOf(ed25519.publicKey) }, ed25519.privateKey],
  ] as const)('verifies %s, and nothing that was changed since', async (alg, jwt, key) => {
    const verifier = createVerifier(jwt)
    const token = await sign({ sub: 'alice' }, alg, key)
    expect(await verifier.verify(token)).toMatchObject({ userId: 'alice' })

    const [header, , signature] = token.split('.')
    const other = Buffer.from(JSON.stringify({ sub: 'admin' })).toString('base64url')
    const error = await errorOf(verifier, `${header}.${other}.${signature}`)
    expect(error).toMatchObject({
      code: 'E_TOKEN_INVALID',
      message: expect.stringContaining('its signature does not match'),
    })
  })
})

describe('which algorithm verifies a token is up to the key', () => {
  it.each([
    ['RSA', rsa.publicKey],
    ['EC', p256.publicKey],
    ['Ed25519', ed25519.publicKey],
  ])('the text of the %s public key does not do as a shared secret', async (_name, publicKey) => {
    const pem = pemOf(publicKey)
    for (const secret of [pem, pem.trim()]) {
      const error = await errorOf(createVerifier({ publicKey: pem }), forge({ alg: 'HS256' }, { sub: 'admin' }, secret))
      expect(error).toMatchObject({ code: 'E_TOKEN_INVALID', message: expect.stringContaining('algorithm') })
    }
  })

  it('a token without a signature is none', async () => {
    const payload = Buffer.from('{"sub":"admin"}').toString('base64url')
    for (const alg of ['none', 'None', 'nOnE', '']) {
      const header = Buffer.from(JSON.stringify({ alg })).toString('base64url')
      const token = `${header}.${payload}.`
      for (const jwt of [{ secret: SECRET }, { publicKey: pemOf(rsa.publicKey) }]) {
        expect((await errorOf(createVerifier(jwt), token)).code).toBe('E_TOKEN_INVALID')
      }
    }
  })

  it('a secret does not verify what a private key signed, nor one curve what another signed', async () => {
    const rs256 = await sign({ sub: 'alice' }, 'RS256', rsa.privateKey)
    expect((await errorOf(createVerifier({ secret: SECRET }), rs256)).message).toContain('algorithm')
    const es384 = await sign({ sub: 'alice' }, 'ES384', p384.privateKey)
    expect((await errorOf(createVerifier({ publicKey: pemOf(p256.publicKey) }), es384)).message).toContain('algorithm')
  })

  it('fewer may be allowed, never more', async () => {
    const verifier = createVerifier({ secret: SECRET, algorithms: ['HS512'] })
    expect((await errorOf(verifier, await signHs({}))).message).toContain('algorithm')
    expect(await verifier.verify(await signHs({}, 'HS512'))).toEqual({ grants: [] })
    expect(() => createVerifier({ publicKey: pemOf(rsa.publicKey), algorithms: ['HS256'] })).toThrow(
      expect.objectContaining({ code: 'E_OPTION_INVALID' }),
    )
  })
})

describe('several keys', () => {
  const secrets = ['a first secret of thirty-two bytes or so', SECRET]
  const publicKey = [pemOf(p256.publicKey), pemOf(rsa.publicKey), pemOf(otherRsa.publicKey)]

  it('verify what any of them signed, of every kind at once', async () => {
    const verifier = createVerifier({ secret: secrets, publicKey })
    for (const token of [
      await signHs({ sub: 'alice' }),
      await sign({ sub: 'alice' }, 'HS256', Buffer.from(secrets[0] ?? '')),
      await sign({ sub: 'alice' }, 'ES256', p256.privateKey),
      await sign({ sub: 'alice' }, 'RS256', rsa.privateKey),
      await sign({ sub: 'alice' }, 'PS256', otherRsa.privateKey),
    ]) {
      expect(await verifier.verify(token)).toMatchObject({ userId: 'alice' })
    }
  })

  it('refuse what a key signed that is not among them, and what a wrong kind of key would verify', async () => {
    const verifier = createVerifier({ secret: secrets, publicKey })
    const stranger = await sign({ sub: 'alice' }, 'HS256', Buffer.from('another secret of thirty-two bytes'))
    expect(await errorOf(verifier, stranger)).toMatchObject({
      code: 'E_TOKEN_INVALID',
      message: expect.stringContaining('its signature does not match'),
    })
    const p384Token = await sign({ sub: 'alice' }, 'ES384', p384.privateKey)
    expect((await errorOf(verifier, p384Token)).message).toContain('algorithm')
    // HS256 is allowed here, but only for the secrets.
    for (const pem of publicKey) {
      for (const secret of [pem, pem.trim()]) {
        const error = await errorOf(verifier, forge({ alg: 'HS256' }, { sub: 'admin' }, secret))
        expect(error.message).toContain('its signature does not match')
      }
    }
  })

  it('look at the claims once a signature matches, whichever key it is of', async () => {
    const verifier = createVerifier({ secret: [...secrets].reverse() })
    expect(await errorOf(verifier, await signHs({ exp: NOW_S - 60 }))).toMatchObject({ code: 'E_TOKEN_EXPIRED' })
  })

  it('are none when the list is empty', () => {
    for (const jwt of [{ secret: [] }, { publicKey: [] }, {}]) {
      expect(() => createVerifier(jwt)).toThrow(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
    }
  })
})

describe('keys that are replaced', () => {
  it('verify from then on; the ones that are gone refuse, and bad ones change nothing', async () => {
    const verifier = new ReloadableVerifier({ secret: SECRET }, { now: () => NOW_S * 1000 })
    const [before, after] = [await signHs({ sub: 'old' }), await sign({ sub: 'new' }, 'RS256', rsa.privateKey)]
    expect(() => verifier.prepare({ publicKey: 'not a key' })).toThrow(
      expect.objectContaining({ code: 'E_OPTION_INVALID' }),
    )
    expect(await verifier.verify(before)).toMatchObject({ userId: 'old' })
    verifier.prepare({ secret: SECRET, publicKey: pemOf(rsa.publicKey) })()
    expect(await verifier.verify(before)).toMatchObject({ userId: 'old' })
    expect(await verifier.verify(after)).toMatchObject({ userId: 'new' })
    verifier.prepare({ publicKey: pemOf(rsa.publicKey) })()
    expect((await errorOf(verifier, before)).message).toContain('algorithm')
    expect(await verifier.verify(after)).toMatchObject({ userId: 'new' })
  })
})

describe('a key', () => {
  it.each([
    ['not PEM', 'hello'],
    ['half of one', '-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----'],
    ['a private key', rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
    ['of a kind that signs nothing', pemOf(generateKeyPairSync('x25519').publicKey)],
    ['of a curve that JWT does not know', pemOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey)],
  ])('is refused when it is %s', (_name, publicKey) => {
    expect(() => createVerifier({ publicKey })).toThrow(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
    expect(() => createVerifier({ publicKey })).toThrow('jwt.publicKey')
  })

  it('gives each session claims of its own', async () => {
    const verifier = createTokenVerifier({ secret: SECRET }, { now: () => NOW_S * 1000, keepsClaims: true })
    const token = await signHs({ sub: 'alice', roles: ['reader'] })
    const [first, second] = [await verifier.verify(token), await verifier.verify(token)]
    expect(first).toEqual(second)
    expect(first.claims?.roles).not.toBe(second.claims?.roles)
  })

  it('verifies a token that it knows by new rules', async () => {
    const verifier = new ReloadableVerifier({ secret: SECRET }, { now: () => NOW_S * 1000 })
    const token = await signHs({ sub: 'alice', aud: 'one' })
    expect(await verifier.verify(token)).toBe(await verifier.verify(token))
    verifier.prepare({ secret: SECRET, audience: 'other' })()
    expect((await errorOf(verifier, token)).message).toContain('aud')
    verifier.prepare({ secret: 'another secret of more than 32 bytes, see RFC 7518' })()
    expect((await errorOf(verifier, token)).message).toContain('signature')
  })

  it('is needed', () => {
    expect(() => createVerifier({})).toThrow(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
  })
})

describe('claims', () => {
  const verifier = createVerifier({
    secret: SECRET,
    issuer: 'https://id.example',
    audience: 'webmq',
    clockToleranceS: 5,
  })
  const good = { iss: 'https://id.example', aud: 'webmq' }

  it('are accepted when they fit', async () => {
    expect(await verifier.verify(await signHs({ ...good, aud: ['other', 'webmq'] }))).toEqual({ grants: [] })
  })

  it.each([
    [{ ...good, iss: 'https://evil.example' }, 'claim iss is not the required issuer'],
    [{ aud: 'webmq' }, 'claim iss is not the required issuer'],
    [{ ...good, aud: 'other' }, 'claim aud does not contain the required audience'],
    [{ iss: good.iss }, 'claim aud does not contain the required audience'],
    [{ ...good, nbf: NOW_S + 60 }, 'claim nbf is in the future'],
    [{ ...good, exp: 'soon' as unknown as number }, 'claim exp is malformed'],
    [{ ...good, sub: 12 as unknown as string }, 'claim sub'],
    [{ ...good, sub: '' }, 'claim sub is not a text'],
    [{ ...good, sub: ['alice'] as unknown as string }, 'claim sub is not a text'],
    [{ ...good, sub: null as unknown as string }, 'claim sub is not a text'],
    [{ ...good, sub: '消'.repeat(86) }, 'claim sub has 258 bytes, at most 255 are allowed'],
    [{ ...good, sub: 'x'.repeat(256) }, 'claim sub has 256 bytes'],
    [{ ...good, sub: 'a\r\nNats-Rollup: all' }, 'claim sub contains a control character'],
    [{ ...good, sub: 'a\u0000' }, 'claim sub contains a control character'],
    [{ ...good, sub: 'a\u0085' }, 'claim sub contains a control character'],
    [{ ...good, sub: 'a\ud800' }, 'claim sub contains a control character or half a surrogate pair'],
    [{ ...good, webmq: { grants: 'all' } }, 'webmq.grants is not a list'],
  ])('%j are refused: %s', async (payload, detail) => {
    const error = await errorOf(verifier, await signHs(payload))
    expect(error.code).toBe('E_TOKEN_INVALID')
    expect(error.message).toContain(detail)
  })

  it.each(['消'.repeat(85), 'x'.repeat(255), 'josé \u{1f600}', '\u2028', '__proto__'])(
    'may name the user %j',
    async (sub) => {
      expect(await verifier.verify(await signHs({ ...good, sub }))).toEqual({ userId: sub, grants: [] })
    },
  )

  it.each(['1e999', '1e306'])('are refused when they expire at no time that can be told: %s', async (exp) => {
    const body = [{ alg: 'HS256' }, good].map((part) => JSON.stringify(part).replace('"iss"', `"exp":${exp},"iss"`))
    const text = body.map((part) => Buffer.from(part).toString('base64url')).join('.')
    const token = `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
    expect(await errorOf(verifier, token)).toMatchObject({
      code: 'E_TOKEN_INVALID',
      message: expect.stringContaining('claim exp is malformed'),
    })
  })

  it('may be off by the clock tolerance, and not by more', async () => {
    expect(await verifier.verify(await signHs({ ...good, nbf: NOW_S + 4 }))).toEqual({ grants: [] })
    expect((await errorOf(verifier, await signHs({ ...good, nbf: NOW_S + 6 }))).code).toBe('E_TOKEN_INVALID')
    expect(await verifier.verify(await signHs({ ...good, exp: NOW_S - 4 }))).toMatchObject({ grants: [] })
    expect((await errorOf(verifier, await signHs({ ...good, exp: NOW_S - 6 }))).code).toBe('E_TOKEN_EXPIRED')
  })

  it('give a token that only the tolerance keeps alive the time of the tolerance, not none', async () => {
    const { expiresAtMs } = await verifier.verify(await signHs({ ...good, exp: NOW_S - 2 }))
    expect(expiresAtMs).toBe((NOW_S - 2 + 5) * 1000)
  })

  it('tell an expired token, which a new one replaces, from one that is wrong', async () => {
    const error = await errorOf(verifier, await signHs({ ...good, exp: NOW_S - 3600 }))
    expect(error).toMatchObject({ code: 'E_TOKEN_EXPIRED', retryable: true })
    // Clocks of two machines differ: it says when, by which one.
    expect(error.message).toMatch(/^token has expired: \d+ s ago, at \d{4}-.+Z; it is \d{4}-.+Z at the server$/)
    expect(ERRORS[error.code]).toHaveProperty('closeCode', 4009)
  })
})

describe('what is no token', () => {
  const verifier = createVerifier({ secret: SECRET })

  it.each([
    '',
    'hello',
    'a.b',
    'a.b.c',
    '..',
    'a.b.c.d.e',
    `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.e30`,
    `${Buffer.from('[]').toString('base64url')}.e30.AAAA`,
    `${Buffer.from('{"alg":"HS256","crit":["x"]}').toString('base64url')}.e30.AAAA`,
    '\u0000\u0000.\uffff.💥',
  ])('is refused without being repeated: %j', async (token) => {
    const error = await errorOf(verifier, token)
    expect(error.code).toBe('E_TOKEN_INVALID')
    if (token.length > 2) expect(`${error.message}${String(error.cause)}`).not.toContain(token)
  })

  it('is refused unread when it is far too long', async () => {
    expect((await errorOf(verifier, 'e'.repeat(20_000))).message).toContain('longer than')
  })

  it('is refused when its payload is no object', async () => {
    const header = { alg: 'HS256' }
    for (const payload of [[], 'text', 12, null]) {
      expect((await errorOf(verifier, forge(header, payload as object, SECRET))).code).toBe('E_TOKEN_INVALID')
    }
  })
})

// A token without exp was valid for ever, and one of another purpose with the same key was taken (RFC 8725 §3.11).
describe.each(['HS256', 'EdDSA'] as const)('stricter rules, with %s', (alg) => {
  const keys = alg === 'HS256' ? { secret: SECRET } : { publicKey: pemOf(ed25519.publicKey) }
  const key = alg === 'HS256' ? Buffer.from(SECRET) : ed25519.privateKey
  const signTyped = (payload: JWTPayload, typ: string) =>
    new SignJWT(payload).setProtectedHeader({ alg, typ }).sign(key)

  it('refuse a token without exp, if it is required', async () => {
    const verifier = createVerifier({ ...keys, requireExp: true })
    expect((await errorOf(verifier, await sign({}, alg, key))).message).toContain('claim exp is missing')
    expect(await verifier.verify(await sign({ exp: NOW_S + 9 }, alg, key))).toMatchObject({ grants: [] })
    expect(await createVerifier(keys).verify(await sign({}, alg, key))).toMatchObject({ grants: [] })
  })

  // Symptom: a token of the future was accepted, and outlived the revocation of all tokens of its user. Cause: iat was looked
  // at only with a largest age, and a revocation covers what was issued until now.
  it('refuse a token that is issued in the future; one within the tolerance is covered by a revocation of now', async () => {
    const verifier = createVerifier({ ...keys, clockToleranceS: 5 })
    for (const iat of [NOW_S + 6, NOW_S + 1e6, 1e300]) {
      const error = await errorOf(verifier, await sign({ iat }, alg, key))
      expect(error).toMatchObject({
        code: 'E_TOKEN_INVALID',
        message: expect.stringContaining('claim iat is in the future'),
      })
      expect(tokenFailureOf(error)).toBe('claim')
    }
    for (const iat of [NOW_S + 5, NOW_S, 0, -1e300]) {
      const identity = await verifier.verify(await sign({ iat, sub: 'ann' }, alg, key))
      const revocations = new Revocations(() => NOW_S * 1000)
      revocations.add({ by: 'user', value: 'ann', until: NOW_S + 60, issuedUntil: NOW_S })
      expect(revocations.covers(identity)).toBe(true)
    }
  })

  it('refuse a token of no age, of the future, and an old one; a session ends with the age', async () => {
    let nowS = NOW_S
    const verifier = createTokenVerifier({ ...keys, maxAgeS: 60, clockToleranceS: 5 }, { now: () => nowS * 1000 })
    const message = async (payload: JWTPayload) => (await errorOf(verifier, await sign(payload, alg, key))).message
    expect(await message({})).toContain('claim iat is missing')
    expect(await message({ iat: NOW_S + 9 })).toContain('claim iat is in the future')
    expect((await errorOf(verifier, await sign({ iat: NOW_S - 90, exp: NOW_S + 90 }, alg, key))).code).toBe(
      'E_TOKEN_EXPIRED',
    )
    const young = await sign({ iat: NOW_S - 20, exp: NOW_S + 900 }, alg, key)
    expect(await verifier.verify(young)).toMatchObject({ expiresAtMs: (NOW_S + 40) * 1000 })
    expect(await verifier.verify(await sign({ iat: NOW_S, exp: NOW_S + 9 }, alg, key))).toMatchObject({
      expiresAtMs: (NOW_S + 9) * 1000,
    })
    nowS += 120
    expect((await errorOf(verifier, young)).code, 'a token that was valid before').toBe('E_TOKEN_EXPIRED')
  })

  it('refuse a token of another type', async () => {
    const verifier = createVerifier({ ...keys, type: 'at+jwt' })
    for (const typ of ['at+jwt', 'application/AT+JWT'])
      expect(await verifier.verify(await signTyped({}, typ))).toMatchObject({ grants: [] })
    for (const token of [await signTyped({}, 'secevent+jwt'), await sign({}, alg, key)])
      expect((await errorOf(verifier, token)).message).toContain('claim typ of the header is not the required type')
  })
})
