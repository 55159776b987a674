import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfigFile } from './config-file.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-config-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function fileWith(content: unknown): string {
  const path = join(folder, 'webmq.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const read = (content: unknown) => Object.fromEntries(readConfigFile(fileWith(content)))

describe('readConfigFile', () => {
  it('reads the names of ServerOptions, numbers with a unit too', () => {
    expect(
      read({
        $schema: 'https://example.com/schema.json',
        port: 9000,
        maxPayloadBytes: '64KiB',
        drainTimeoutMs: 5000,
        insecure: true,
        origins: ['https://a.example'],
        jwt: { secret: 'a secret from the file', clockToleranceS: '1m' },
      }),
    ).toEqual({
      port: 9000,
      maxPayloadBytes: 65_536,
      drainTimeoutMs: 5000,
      insecure: true,
      origins: ['https://a.example'],
      'jwt.secret': ['a secret from the file'],
      'jwt.clockToleranceS': 60,
    })
  })

  it('reads one file name for a list of files, commas and all', () => {
    expect(read({ tls: { certFile: 'a,b.pem', keyFile: ['a.key'] } })).toEqual({
      'tls.certFile': ['a,b.pem'],
      'tls.keyFile': ['a.key'],
    })
  })

  it('reads a secret from a file of its own', () => {
    const secretFile = join(folder, 'secret')
    writeFileSync(secretFile, 'hunter2 hunter2 hunter2\n')
    const secret = 'hunter2 hunter2 hunter2'
    expect(read({ jwt: { secretFile } })).toEqual({ 'jwt.secret': [secret] })
    expect(read({ jwt: { secretFile: [secretFile, secretFile] } })).toEqual({ 'jwt.secret': [secret, secret] })
    expect(() => read({ jwt: { secretFile: [] } })).toThrow('a list of 1 to 8 texts')
    expect(() => read({ jwt: { secretFile: [secretFile, 1] } })).toThrow('jwt.secretFile')
  })

  it.each([
    ['{', 'is not JSON'],
    ['', 'is not JSON'],
    ['[]', 'does not contain an object'],
    ['"x"', 'does not contain an object'],
    [{ prot: 1 }, 'prot: unknown option, did you mean port?'],
    [{ jwt: { secrt: 'x' } }, 'jwt.secrt: unknown option, did you mean jwt.secret?'],
    [{ jwt: {} }, 'jwt: unknown option'],
    [{ jwt: null }, 'jwt: unknown option'],
    [{ jwt: 'secret' }, 'jwt: unknown option'],
    [{ port: '99999' }, 'port: 99999 is not a whole number'],
    [{ port: null }, 'port: null is not a whole number'],
    [{ port: 1.5 }, 'port: 1.5 is not'],
    [{ insecure: 'maybe' }, 'insecure: "maybe" is not true or false'],
    [{ origins: 'https://a.example' }, 'origins: "https://a.example" is not a list of texts'],
    [{ logger: {} }, 'logger: unknown option'],
    [{ host: { a: { b: 1 } } }, 'host: {"a":{"b":1}} is not a text'],
  ])('refuses %j: %s', (content, message) => {
    expect(() => read(content)).toThrow(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
    expect(() => read(content)).toThrow(message)
    expect(() => read(content), 'the file is named').toThrow(join(folder, 'webmq.json'))
  })

  it('names a file that is not there', () => {
    const path = join(folder, 'missing.json')
    expect(() => readConfigFile(path)).toThrow(`config: cannot read ${path} (ENOENT)`)
  })
})
