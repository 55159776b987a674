import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mergeSources, readEnvironment, readPlatformPort, unknownVariables } from './option-sources.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-env-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const read = (env: NodeJS.ProcessEnv) => Object.fromEntries(readEnvironment(env))
const readPort = (env: NodeJS.ProcessEnv) => Object.fromEntries(readPlatformPort(env))

describe('readEnvironment', () => {
  it('reads every kind of value', () => {
    expect(
      read({
        WEBMQ_HOST: '0.0.0.0',
        WEBMQ_MAX_PAYLOAD: '64KiB',
        WEBMQ_DRAIN_TIMEOUT: '10s',
        WEBMQ_INSECURE: 'on',
        WEBMQ_ORIGIN: 'https://a.example, http://localhost:*',
        WEBMQ_TLS_CERT: 'a.pem,b.pem',
        WEBMQ_LOG_LEVEL: 'debug',
        WEBMQ_JWKS: 'https://id.example/jwks.json',
      }),
    ).toEqual({
      host: '0.0.0.0',
      maxPayloadBytes: 65_536,
      drainTimeoutMs: 10_000,
      insecure: true,
      origins: ['https://a.example', 'http://localhost:*'],
      'tls.certFile': ['a.pem', 'b.pem'],
      logLevel: 'debug',
      'jwt.jwksUrl': 'https://id.example/jwks.json',
    })
  })

  it('takes an empty variable for one that is not set', () => {
    expect(read({ WEBMQ_PORT: '', WEBMQ_HOST: '' })).toEqual({})
    expect(readPort({ PORT: '' })).toEqual({})
  })

  it('does not take an empty secret for none: the server would be open to everyone', () => {
    expect(() => read({ WEBMQ_JWT_SECRET: '' })).toThrow('WEBMQ_JWT_SECRET')
    expect(() => read({ WEBMQ_JWT_SECRET_FILE: '' })).toThrow('WEBMQ_JWT_SECRET_FILE')
    expect(() => read({ WEBMQ_JWKS: '' })).toThrow('WEBMQ_JWKS')
  })

  it('reads a secret from the file that is named, without the line break at its end', () => {
    const file = join(folder, 'secret')
    writeFileSync(file, 'two words and a space \n')
    expect(read({ WEBMQ_JWT_SECRET_FILE: file })).toEqual({ 'jwt.secret': ['two words and a space '] })
  })

  it('reads one secret from the variable, commas and all, and several from files', () => {
    const [old, next] = ['old', 'new'].map((name) => {
      const file = join(folder, name)
      writeFileSync(file, `${name} secret of 16 bytes or more\n`)
      return file
    })
    const files: [string, string][] = []
    const env = { WEBMQ_JWT_SECRET_FILE: `${old}, ${next}` }
    expect(Object.fromEntries(readEnvironment(env, undefined, (...read) => files.push(read)))).toEqual({
      'jwt.secret': ['old secret of 16 bytes or more', 'new secret of 16 bytes or more'],
    })
    expect(files).toEqual([
      ['jwt.secret', old],
      ['jwt.secret', next],
    ])
    expect(read({ WEBMQ_JWT_SECRET: 'one secret, with a comma' })).toEqual({
      'jwt.secret': ['one secret, with a comma'],
    })
  })

  it('names the variable when the file cannot be read', () => {
    const file = join(folder, 'missing')
    expect(() => read({ WEBMQ_JWT_SECRET_FILE: file })).toThrow(`WEBMQ_JWT_SECRET_FILE: cannot read ${file} (ENOENT)`)
  })

  it('does not choose between a secret and a file of it', () => {
    expect(() => read({ WEBMQ_JWT_SECRET: 'a', WEBMQ_JWT_SECRET_FILE: 'b' })).toThrow('are both set')
  })

  it('reads a public key from PEM text and from a file', () => {
    const pem = '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'
    const file = join(folder, 'key.pem')
    writeFileSync(file, `${pem}\n`)
    expect(read({ WEBMQ_JWT_PUBLIC_KEY: pem })).toEqual({ 'jwt.publicKey': [pem] })
    expect(read({ WEBMQ_JWT_PUBLIC_KEY: file })).toEqual({ 'jwt.publicKey': [pem] })
  })

  it('does not repeat a secret that it refuses', () => {
    const secret = '-----BEGIN RSA PRIVATE KEY-----hunter2'
    expect(() => read({ WEBMQ_JWT_SECRET: secret })).toThrow(/^(?!.*hunter2)/s)
    expect(() => read({ WEBMQ_JWT_SECRET: secret })).toThrow('WEBMQ_JWT_SECRET')
  })
})

describe('readPlatformPort', () => {
  it('reads PORT, which is none of the variables of WebMQ', () => {
    expect(readPort({ PORT: '3000', WEBMQ_PORT: '4000' })).toEqual({ port: 3000 })
    expect(read({ PORT: '3000' })).toEqual({})
  })

  it('names the variable when it is not a port', () => {
    expect(() => readPort({ PORT: 'http' })).toThrow('PORT: "http" is not a whole number')
  })
})

describe('unknownVariables', () => {
  it('finds typos, and says what was meant', () => {
    expect(
      unknownVariables({
        WEBMQ_PRT: '1',
        WEBMQ_PORT: '1',
        WEBMQ_CONFIG: 'x',
        WEBMQ_JWT_SECRET_FILE: 'x',
        WEBMQ_DEFAULTS: 'x',
        PORT: '1',
      }),
    ).toEqual(['unknown environment variable WEBMQ_PRT, did you mean WEBMQ_PORT?'])
  })
})

describe('mergeSources', () => {
  it('lets the first source win, option by option, in groups too', () => {
    const flags = new Map([['jwt.issuer', 'flags']])
    const env = new Map<string, string | number>([
      ['port', 2],
      ['jwt.issuer', 'env'],
      ['jwt.audience', 'env'],
    ])
    const file = new Map<string, string | number>([
      ['port', 3],
      ['path', '/file'],
      ['jwt.secret', 'file'],
    ])
    expect(mergeSources([flags, env, file])).toEqual({
      port: 2,
      path: '/file',
      jwt: { secret: 'file', audience: 'env', issuer: 'flags' },
    })
  })
})
