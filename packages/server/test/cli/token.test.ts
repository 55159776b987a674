import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTokenVerifier } from '../../src/kernel/identity/index.js'
import { runInProcess } from './in-process.js'

const SECRET = 'a secret that is long enough for HS256'
const env = { WEBMQ_JWT_SECRET: SECRET }

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-token-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function create(args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runInProcess(['token', 'create', '-q', ...args], { env })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout.trim()
}

describe('webmq-server token create', () => {
  it('prints a token that the server accepts, and tells people what it allows', async () => {
    const args = ['--grant', 'chat.#:listen,publish', '-g', 'prices.*:listen', '-u', 'alice', '--ttl', '2h']
    const { exitCode, stdout, stderr } = await runInProcess(['token', 'create', ...args], { env })
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(stderr).toContain('HS256 token for alice')
    expect(stderr).toContain('listen and publish chat.#')
    expect(stderr).toContain('listen prices.*')
    const { expiresAtMs, issuedAtS, ...identity } = await createTokenVerifier({ secret: SECRET }).verify(stdout.trim())
    expect(identity).toEqual({
      userId: 'alice',
      grants: [
        { keys: ['chat.#'], allow: ['listen', 'publish'] },
        { keys: ['prices.*'], allow: ['listen'] },
      ],
    })
    expect(Math.abs((expiresAtMs ?? 0) - Date.now() - 7_200_000)).toBeLessThan(60_000)
    expect((issuedAtS ?? 0) * 1_000).toBe((expiresAtMs ?? 0) - 7_200_000)
  })

  it('is good for an hour when not told otherwise', async () => {
    const { iat = 0, exp = 0 } = decodeJwt(await create(['-g', '#:listen']))
    expect(exp - iat).toBe(3600)
  })

  it('names issuer, audience and key', async () => {
    const token = await create([
      '-g',
      'a:listen',
      '--issuer',
      'me',
      '--audience',
      'webmq',
      '--kid',
      'k1',
      '--alg',
      'HS512',
    ])
    expect(decodeProtectedHeader(token)).toEqual({ alg: 'HS512', typ: 'JWT', kid: 'k1' })
    expect(decodeJwt(token)).toMatchObject({ iss: 'me', aud: 'webmq' })
  })

  it.each([
    ['rsa', generateKeyPairSync('rsa', { modulusLength: 2048 }), 'RS256'],
    ['ec', generateKeyPairSync('ec', { namedCurve: 'P-384' }), 'ES384'],
    ['ed25519', generateKeyPairSync('ed25519'), 'EdDSA'],
  ] as const)('signs with a private %s key', async (_type, { privateKey, publicKey }, alg) => {
    const file = join(folder, 'private.pem')
    writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const { stdout } = await runInProcess(['token', 'create', '-q', '-g', 'a:publish', '--private-key', file])
    expect(decodeProtectedHeader(stdout.trim()).alg).toBe(alg)
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
    expect((await createTokenVerifier({ publicKey: pem }).verify(stdout.trim())).grants).toHaveLength(1)
  })

  it('warns that a token without grants allows nothing', async () => {
    const { exitCode, stderr } = await runInProcess(['token', 'create'], { env })
    expect(exitCode).toBe(0)
    expect(stderr).toContain('warning: the token allows nothing')
  })

  it('looks at nothing but what concerns tokens', async () => {
    expect((await runInProcess(['token', 'create', '-q'], { env: { ...env, WEBMQ_PORT: 'nonsense' } })).exitCode).toBe(
      0,
    )
  })

  it.each([
    [['-g', 'chat.#'], '--grant: "chat.#" is not <pattern>:<actions>'],
    [['-g', 'chat.#:read'], '--grant: "chat.#:read" is not'],
    [['-g', 'chat.#:'], '--grant: "chat.#:" is not'],
    [['-g', 'ch*t:listen'], '--grant: '],
    [['-g', ':listen'], '--grant: '],
    [['--ttl', '0'], '--ttl: "0" is not a time'],
    [['--ttl', 'soon'], '--ttl: "soon" is not a time'],
    [['--alg', 'RS256'], '--alg: RS256 does not fit this key, which allows HS256'],
    [['--alg', 'none'], '--alg: none does not fit'],
    [['--private-key', '/nowhere/key.pem'], '--private-key: cannot read /nowhere/key.pem'],
  ])('%j ends with 2 and says what is wrong', async (args, message) => {
    const { exitCode, stdout, stderr } = await runInProcess(['token', 'create', ...args], { env })
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('wants a key', async () => {
    const { exitCode, stderr } = await runInProcess(['token', 'create', '-g', 'a:listen'])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('no key to sign with')
  })
})

describe('webmq-server token inspect', () => {
  const grants = ['-g', 'chat.#:listen,publish', '-g', 'prices.*:listen', '-u', 'alice']

  it('verifies, and shows what the token says', async () => {
    const { exitCode, stdout } = await runInProcess(['token', 'inspect', await create(grants)], { env })
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/signature +verified \(HS256\)\nuser +alice\n/)
    expect(stdout).toMatch(/expires .*\(in 60 min\)/)
    expect(stdout).toMatch(/grants\n {2}listen and publish chat\.#\n {2}listen prices\.\*\n$/)
  })

  it('says loudly that it could not verify without a key', async () => {
    const { exitCode, stdout } = await runInProcess(['token', 'inspect', await create(grants)])
    expect(exitCode).toBe(0)
    expect(stdout).toContain('NOT VERIFIED')
  })

  it('explains which grant allows', async () => {
    const token = await create(grants)
    const { exitCode, stdout } = await runInProcess(
      ['token', 'inspect', token, '--can', 'publish chat.1', '--can', 'listen prices.eur'],
      { env },
    )
    expect(exitCode).toBe(0)
    expect(stdout).toContain('publish chat.1: allowed, the grant publish chat.# covers it')
    expect(stdout).toContain('listen prices.eur: allowed, the grant listen prices.* covers it')
  })

  it('explains why none does, and ends with 1', async () => {
    const token = await create(grants)
    const { exitCode, stdout } = await runInProcess(['token', 'inspect', token, '--can', 'publish prices.eur'], { env })
    expect(exitCode).toBe(1)
    expect(stdout).toContain(
      'publish prices.eur: denied, none of chat.# matches that key; prices.* covers it, but does not allow publish',
    )
  })

  it('refuses, with 1, a token of another key, and then allows nothing', async () => {
    const token = await create(grants)
    const { exitCode, stdout } = await runInProcess(['token', 'inspect', token, '--can', 'publish chat.1'], {
      env: { WEBMQ_JWT_SECRET: 'another secret, long enough' },
    })
    expect(exitCode).toBe(1)
    expect(stdout).toContain('REFUSED (token is not valid: its signature does not match)')
    expect(stdout).toContain('publish chat.1: denied, the token itself is refused')
  })

  it('tells an expired token from a wrong one', async () => {
    const token = await new SignJWT({})
      .setProtectedHeader({ alg: 'HS256' })
      .setExpirationTime(1000)
      .sign(Buffer.from(SECRET))
    const { exitCode, stdout } = await runInProcess(['token', 'inspect', token], { env })
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/REFUSED \(token has expired: \d+ s ago, at 1970-01-01T00:16:40\.000Z; it is /)
    expect(stdout).toMatch(/expires +1970-01-01T00:16:40\.000Z \(\d+ days ago\)/)
  })

  it('reads the token from standard input', async () => {
    const { stdout } = await runInProcess(['token', 'inspect', '-'], { env, stdin: `${await create(grants)}\n` })
    expect(stdout).toContain('verified (HS256)')
  })

  it('prints JSON for programs', async () => {
    const { stdout } = await runInProcess(['token', 'inspect', await create(grants), '--json', '--can', 'listen #'], {
      env,
    })
    expect(JSON.parse(stdout)).toMatchObject({
      signature: 'verified',
      header: { alg: 'HS256' },
      payload: { sub: 'alice' },
      grants: [{ keys: ['chat.#'] }, { keys: ['prices.*'] }],
      can: [{ action: 'listen', subject: '#', isAllowed: false }],
    })
  })

  it('does not let a token that anyone wrote steer the terminal', async () => {
    const token = await new SignJWT({ sub: '\u001b[2Jroot\u202e' })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(SECRET))
    const { stdout } = await runInProcess(['token', 'inspect', token])
    expect(stdout).toContain('\\u{1b}[2Jroot\\u{202e}')
    expect(stdout).not.toContain('\u001b')
  })

  it('shows what is malformed in the claim', async () => {
    const token = await new SignJWT({ webmq: { grants: 'all' } })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(SECRET))
    const { exitCode, stdout } = await runInProcess(['token', 'inspect', token, '--can', 'listen a'])
    expect(exitCode).toBe(1)
    expect(stdout).toContain('webmq.grants is not a list')
  })

  it.each([
    [['hello'], 1, 'not a signed JWT'],
    [['a.b.c', '--can', 'eat chat.1'], 2, '--can: "eat chat.1" is not'],
    [['a.b.c', '--can', 'publish'], 2, '--can: "publish" is not'],
    [['a.b.c', '--can', 'publish chat.*'], 2, '--can: '],
    [[], 2, "missing required argument 'token'"],
  ])('%j ends with %i and says what is wrong', async (args, expected, message) => {
    const { exitCode, stderr } = await runInProcess(['token', 'inspect', ...args])
    expect(exitCode).toBe(expected)
    expect(stderr).toContain(message)
  })
})
