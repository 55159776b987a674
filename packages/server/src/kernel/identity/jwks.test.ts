import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../base/logger.js'
import { createTokenVerifier, ReloadableVerifier, type TokenVerifier } from './token-verifier.js'

/** A key that signs, and the set member that verifies. */
interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: KeyObject
  readonly jwk: object
}

function createKey(kid: string, alg = 'ES256'): SigningKey {
  const pair =
    alg === 'RS256'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : alg === 'EdDSA'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    kid,
    alg,
    privateKey: pair.privateKey,
    jwk: { ...pair.publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' },
  }
}

function sign({ privateKey, kid, alg }: SigningKey, header: object = {}): Promise<string> {
  return new SignJWT({ sub: kid }).setProtectedHeader({ alg, kid, ...header }).sign(privateKey)
}

function nameless(key: SigningKey): SigningKey {
  return { ...key, jwk: { ...key.jwk, kid: undefined } }
}

const TEN_MINUTES_MS = 600_000
const A_DAY_MS = 86_400_000

describe('tokens verified by a key set', () => {
  const old = createKey('old')
  const next = createKey('next', 'RS256')
  const stranger = createKey('stranger', 'EdDSA')

  let httpServer: Server
  let url: string
  let requestCount: number
  let answer: (response: ServerResponse) => void
  let nowMs: number
  let warnings: object[]
  let verifier: TokenVerifier

  const serveKeys = (...keys: readonly SigningKey[]): void => {
    answer = (response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }))
    }
  }
  const fail = (): void => {
    answer = (response) => {
      response.statusCode = 503
      response.end('busy')
    }
  }

  const userOf = async (token: string): Promise<string | undefined> => (await verifier.verify(token)).userId
  const codeOf = async (token: string): Promise<string> =>
    await userOf(token).then(
      () => 'accepted',
      (error: WebMQError) => error.code,
    )

  beforeEach(async () => {
    requestCount = 0
    nowMs = Date.now()
    warnings = []
    serveKeys(old)
    httpServer = createServer((_request, response) => {
      requestCount += 1
      answer(response)
    })
    await new Promise<void>((resolve) => httpServer.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(httpServer.address() as AddressInfo).port}/jwks.json`
    const logger = { warn: (fields: object) => warnings.push(fields) } as unknown as Logger
    verifier = createTokenVerifier({ jwksUrl: url }, { logger, now: () => nowMs })
  })

  afterEach(async () => {
    httpServer.closeAllConnections()
    await new Promise((resolve) => httpServer.close(resolve))
  })

  it('reads the set for the first token, and keeps it', async () => {
    expect(requestCount).toBe(0)
    for (let round = 0; round < 3; round++) expect(await userOf(await sign(old))).toBe('old')
    expect(requestCount).toBe(1)
  })

  it('reads it once for tokens that come at the same time', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => sign(old)))
    expect(await Promise.all(tokens.map(userOf))).toEqual(Array.from({ length: 20 }, () => 'old'))
    expect(requestCount).toBe(1)
  })

  it('follows a rotation at once: a token with an unknown key makes it read the set again', async () => {
    await userOf(await sign(old))
    serveKeys(old, next)
    expect(await userOf(await sign(next))).toBe('next')
    expect(await userOf(await sign(old))).toBe('old')
    expect(requestCount).toBe(2)
  })

  it('does not let strangers make it read the set again and again', async () => {
    const token = await sign(stranger)
    for (let round = 0; round < 10; round++) expect(await codeOf(token)).toBe('E_TOKEN_INVALID')
    expect(requestCount).toBe(2)
    nowMs += 29_999
    expect(await codeOf(token)).toBe('E_TOKEN_INVALID')
    expect(requestCount).toBe(2)
    nowMs += 1
    serveKeys(stranger)
    expect(await userOf(token)).toBe('stranger')
    expect(requestCount).toBe(3)
  })

  it('stops trusting a key that was taken out of the set, once a token after ten minutes has started a fetch', async () => {
    await userOf(await sign(old))
    serveKeys(next)
    nowMs += TEN_MINUTES_MS - 1
    expect(await codeOf(await sign(old))).toBe('accepted')
    expect(requestCount).toBe(1)
    nowMs += 1
    expect(await codeOf(await sign(old)), 'a token does not wait').toBe('accepted')
    await vi.waitFor(async () => expect(await codeOf(await sign(old))).toBe('E_TOKEN_INVALID'))
  })

  it('looks again at a token that it knows, when the set has changed', async () => {
    const token = await sign(old)
    for (let round = 0; round < 2; round++) expect(await codeOf(token)).toBe('accepted')
    serveKeys(next)
    nowMs += TEN_MINUTES_MS
    await vi.waitFor(async () => expect(await codeOf(token)).toBe('E_TOKEN_INVALID'))
  })

  it('knows no token any more, once the set is too old to be used', async () => {
    const token = await sign(old)
    for (let round = 0; round < 2; round++) expect(await codeOf(token)).toBe('accepted')
    fail()
    nowMs += A_DAY_MS
    expect(await codeOf(token)).toBe('E_INTERNAL')
  })

  it('lets no token wait for an address that hangs, while it holds a good set', async () => {
    const token = await sign(old)
    await userOf(token)
    answer = () => undefined
    nowMs += TEN_MINUTES_MS
    for (let round = 0; round < 20; round++) expect(await userOf(token)).toBe('old')
    await vi.waitFor(() => expect(requestCount).toBe(2))
    verifier.close()
  })

  it('goes on with the last good set while the address fails, for a day', async () => {
    const token = await sign(old)
    await userOf(token)
    fail()
    nowMs += TEN_MINUTES_MS
    expect(await userOf(token)).toBe('old')
    await vi.waitFor(() => expect(warnings).toEqual([expect.objectContaining({ url, hasOlderSet: true })]))
    expect(await userOf(token)).toBe('old')
    expect(requestCount, 'a failing address is left alone for 5 seconds').toBe(2)
    nowMs += 5000
    expect(await userOf(token)).toBe('old')
    await vi.waitFor(() => expect(warnings).toHaveLength(2))
    expect(requestCount).toBe(3)
    nowMs += 24 * 3_600_000
    expect(await codeOf(token)).toBe('E_INTERNAL')
  })

  it('says that it is the server, not the token, when no set can be read, and tries again', async () => {
    fail()
    const token = await sign(old)
    const error = await userOf(token).catch((reason: WebMQError) => reason)
    expect(error).toMatchObject({ code: 'E_INTERNAL', retryable: true })
    expect((error as WebMQError).message, 'clients are not told where the keys are').not.toContain('127.0.0.1')
    expect(await codeOf(token)).toBe('E_INTERNAL')
    expect(requestCount).toBe(1)
    serveKeys(old)
    nowMs += 5000
    expect(await userOf(token)).toBe('old')
  })

  it('does not refuse a token for good whose key it cannot look up at the moment', async () => {
    await userOf(await sign(old))
    fail()
    const token = await sign(next)
    for (let round = 0; round < 3; round++) expect(await codeOf(token)).toBe('E_INTERNAL')
    expect(requestCount).toBe(2)
    expect(await userOf(await sign(old)), 'keys that are known go on').toBe('old')
    serveKeys(old, next)
    nowMs += 5000
    expect(await userOf(token)).toBe('next')
  })

  it.each([
    ['no JSON', 'hello'],
    ['no key set', '{"keys":12}'],
    ['an error page', '<html>'],
    ['endless', `{"keys":[],"x":"${'x'.repeat(2 * 1024 * 1024)}"}`],
  ])('does not take an answer that is %s for a set', async (_name, body) => {
    answer = (response) => response.end(body)
    expect(await codeOf(await sign(old))).toBe('E_INTERNAL')
  })

  it('does not follow a redirection to keys of someone else', async () => {
    answer = (response) => response.writeHead(302, { location: 'http://127.0.0.1:9/evil.json' }).end()
    expect(await codeOf(await sign(old))).toBe('E_INTERNAL')
    expect(requestCount).toBe(1)
  })

  it('does not take a secret out of a set, nor HS tokens signed with a public key of it', async () => {
    const secret = Buffer.from('a secret that was published by mistake')
    answer = (response) =>
      response.end(JSON.stringify({ keys: [{ kty: 'oct', kid: 'oops', k: secret.toString('base64url') }, old.jwk] }))
    const token = await new SignJWT({ sub: 'admin' }).setProtectedHeader({ alg: 'HS256', kid: 'oops' }).sign(secret)
    expect(await codeOf(token)).toBe('E_TOKEN_INVALID')
    const confused = await new SignJWT({ sub: 'admin' })
      .setProtectedHeader({ alg: 'HS256', kid: 'old' })
      .sign(Buffer.from(JSON.stringify(old.jwk)))
    expect(await codeOf(confused)).toBe('E_TOKEN_INVALID')
  })

  it('refuses a token that uses the name of a key with another key', async () => {
    expect(await codeOf(await sign({ ...createKey('old') }))).toBe('E_TOKEN_INVALID')
  })

  // Symptom: tokens of two keys without a name were refused, while two public keys of the options rotate. Cause: only the one
  // key that fits was ever tried.
  it('tries up to eight keys that fit a token without a name, or with a name that several have', async () => {
    const keys = Array.from({ length: 8 }, (_, index) => nameless(createKey(`key-${index}`)))
    serveKeys(...keys, createKey('other type', 'EdDSA'))
    for (const key of keys) expect(await userOf(await sign(key, { kid: undefined }))).toBe(key.kid)
    expect(await codeOf(await sign(createKey('x'), { kid: undefined }))).toBe('E_TOKEN_INVALID')
    const twins = [createKey('twin'), createKey('twin')]
    serveKeys(...twins)
    nowMs += 30_000
    for (const twin of twins) expect(await userOf(await sign(twin))).toBe('twin')
    serveKeys(...keys, old)
    nowMs += 30_000
    const beyond = sign(createKey('beyond'), { kid: undefined })
    await expect(verifier.verify(await beyond)).rejects.toThrow('too many keys match it; it must name one (kid)')
  })

  it('follows a rotation of keys without a name, once per cool-down', async () => {
    serveKeys(nameless(old))
    expect(await userOf(await sign(old, { kid: undefined }))).toBe('old')
    serveKeys(nameless(createKey('new')))
    const token = await sign(createKey('x'), { kid: undefined })
    for (let round = 0; round < 5; round++)
      await expect(verifier.verify(token)).rejects.toThrow('its signature does not match')
    expect(requestCount).toBe(2)
    const other = createKey('newer')
    serveKeys(nameless(other))
    nowMs += 30_000
    expect(await userOf(await sign(other, { kid: undefined }))).toBe('newer')
    expect(requestCount).toBe(3)
  })

  // Symptom: one answer without keys, as of a provider that restarts, and each valid token was refused for good. Cause: such a
  // set replaced the good one.
  it.each([
    ['no keys', []],
    ['a key for encryption', [{ ...old.jwk, use: 'enc' }]],
    ['a key for other operations', [{ ...old.jwk, key_ops: ['encrypt'] }]],
    ['a secret', [{ kty: 'oct', k: 'c2VjcmV0' }]],
    ['a private key', [{ ...old.privateKey.export({ format: 'jwk' }), kid: 'old' }]],
    ['an unknown type, a broken key and no key', [{ kty: 'XYZ' }, { kty: 'EC', crv: 'P-256', x: '!' }, null, 12]],
    [
      'a curve that no algorithm has',
      [generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' })],
    ],
  ])('takes a set with %s for a failure, and goes on with the last good one', async (_, keys) => {
    const token = await sign(old)
    const answerSet = () => {
      answer = (response) => response.end(JSON.stringify({ keys }))
    }
    answerSet()
    expect(await codeOf(token), 'there is no other set').toBe('E_INTERNAL')
    serveKeys(old)
    nowMs += 5_000
    expect(await codeOf(token)).toBe('accepted')
    answerSet()
    expect(await codeOf(await sign(next)), 'it may be of a key that comes').toBe('E_INTERNAL')
    expect(await codeOf(await sign(old))).toBe('accepted')
    expect(warnings).toEqual([
      expect.objectContaining({ hasOlderSet: false }),
      expect.objectContaining({ hasOlderSet: true }),
    ])
    expect(requestCount, 'a failing address is left alone for 5 seconds').toBe(3)
  })

  it('survives a set that is deep or has many keys', async () => {
    await userOf(await sign(old))
    const many = JSON.stringify({ keys: [old.jwk, ...Array(1_000).fill({ kty: 'EC' })] })
    for (const body of [`{"keys":${'['.repeat(400_000)}`, many]) {
      answer = (response) => response.end(body)
      nowMs += TEN_MINUTES_MS
      expect(await codeOf(await sign(old))).toBe('accepted')
      await vi.waitFor(() => expect(warnings.length).toBeGreaterThan(0))
      warnings.length = 0
    }
    answer = (response) =>
      response.end(
        `{"keys":[${JSON.stringify(old.jwk).slice(0, -1)},"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}]}`,
      )
    nowMs += TEN_MINUTES_MS
    expect(await codeOf(await sign(old))).toBe('accepted')
    await vi.waitFor(() => expect(requestCount).toBe(4))
    expect(await codeOf(await sign(old))).toBe('accepted')
  })

  it('stand beside public keys and secrets; the set is asked last, and one bad token per cool-down fetches it', async () => {
    const own = createKey('own')
    const secret = 'a secret of more than thirty-two bytes'
    const publicKey = createPublicKey(own.privateKey).export({ type: 'spki', format: 'pem' }).toString()
    verifier = createTokenVerifier({ secret, publicKey, jwksUrl: url }, { now: () => nowMs })
    expect(await userOf(await sign(own))).toBe('own')
    const hs = new SignJWT({ sub: 'hs' }).setProtectedHeader({ alg: 'HS256', kid: 'old' })
    expect(await userOf(await hs.sign(Buffer.from(secret)))).toBe('hs')
    expect(requestCount).toBe(0)
    expect(await userOf(await sign(old))).toBe('old')
    expect(requestCount).toBe(1)
    for (const kid of ['unknown', 'unknown-2', 'own']) {
      expect(await codeOf(await sign(createKey(kid)))).toBe('E_TOKEN_INVALID')
    }
    expect(requestCount).toBe(2)
  })

  it('keep what they have fetched when other keys change, and forget it when their address does', async () => {
    const reloadable = new ReloadableVerifier({ jwksUrl: url }, { now: () => nowMs })
    verifier = reloadable
    expect(await userOf(await sign(old))).toBe('old')
    fail()
    reloadable.prepare({ jwksUrl: url, secret: 'a secret of more than thirty-two bytes' })()
    expect(await userOf(await sign(old))).toBe('old')
    reloadable.prepare({ jwksUrl: `${url}?other` })()
    expect(await codeOf(await sign(old))).toBe('E_INTERNAL')
  })
})
