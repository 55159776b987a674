import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { isForThisMachineOnly } from '../../src/doors/options/access.js'
import { resolveOptions } from '../../src/doors/options/options.js'
import { loadHooks } from '../../src/features/hooks/load-hooks.js'
import { createServer, type ServerOptions } from '../../src/index.js'
import { runCli } from '../cli/process.js'

const folder = mkdtempSync(join(tmpdir(), 'webmq-hooks-'))
afterAll(() => rmSync(folder, { recursive: true }))

function moduleWith(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

describe('a module of hooks', () => {
  it.each([
    ['default.mjs', 'export default { connect() {}, publish: async () => {} }', ['connect', 'publish']],
    ['named.mjs', 'export const listen = () => {}\nexport function deliver() {}', ['deliver', 'listen']],
    ['instance.mjs', 'class Mine { presence() {} }\nexport default new Mine()', ['presence']],
    ['common.cjs', 'exports.disconnect = () => {}', ['disconnect']],
  ])('%s is loaded', async (name, text, expected) => {
    const hooks = await loadHooks(moduleWith(name, text))
    const found = ['connect', 'deliver', 'disconnect', 'listen', 'presence', 'publish'].filter((hook) => hook in hooks)
    expect(found).toEqual(expected)
  })

  it.each([
    ['nothing.mjs', 'export {}', 'has no hook; there are connect,'],
    ['typo.mjs', 'export const onConnect = () => {}', 'has an unknown hook onConnect'],
    ['value.mjs', 'export const connect = true', ': connect is not a function'],
    ['function.mjs', 'export default () => {}', 'is not an object with functions'],
    ['syntax.mjs', 'export const = 1', 'cannot load'],
    ['throws.mjs', 'throw new Error("no database")', 'no database'],
  ])('%s is refused', async (name, text, reason) => {
    const failed = await loadHooks(moduleWith(name, text)).catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'E_OPTION_INVALID', message: expect.stringContaining(reason) })
    expect(failed).toMatchObject({ message: expect.stringContaining(name) })
  })

  it('that is missing ends the start of the command line with the reason', async () => {
    const { exitCode, stderr } = await runCli(['--port', '0', '--hooks', join(folder, 'missing.mjs')])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('missing.mjs')
  })

  it('without connect does not open the server to others', async () => {
    const hooks = moduleWith('publish.mjs', 'export const publish = () => {}')
    const { exitCode, stderr } = await runCli(['--port', '0', '--host', '0.0.0.0', '--hooks', hooks])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('E_INSECURE')
  })
})

const connect = () => undefined
const url = 'https://app.example.com/webmq'

describe('options of hooks', () => {
  it.each<[string, ServerOptions]>([
    ['a hook that identifies clients', { host: '0.0.0.0', hooks: { connect } }],
    ['a webhook that identifies clients', { host: '0.0.0.0', webhook: { url } }],
    ['a webhook of this machine', { webhook: { url: 'http://127.0.0.1:3000/' } }],
    ['a webhook anywhere, when told so', { insecure: true, webhook: { url: 'http://app.internal/' } }],
    ['a header of the application', { webhook: { url, headers: ['Cookie', 'x-tenant'] } }],
  ])('allow %s', (_, options) => {
    expect(isForThisMachineOnly(resolveOptions(options))).toBe(false)
  })

  it.each<[string, object, string, string]>([
    ['a hook that nobody knows', { hooks: { conect: connect } }, 'E_OPTION_INVALID', 'unknown hook conect'],
    ['a hook that is no function', { hooks: { connect: 'yes' } }, 'E_OPTION_INVALID', 'connect is not a function'],
    ['no hooks at all', { hooks: {} }, 'E_OPTION_INVALID', 'has no hook'],
    ['a file in a program', { hooks: './hooks.js' }, 'E_OPTION_INVALID', 'a program passes an object'],
    [
      'hooks that identify nobody, beyond this machine',
      { host: '0.0.0.0', hooks: { publish: connect } },
      'E_INSECURE',
      'connect',
    ],
    [
      'a webhook that identifies nobody, beyond this machine',
      { host: '0.0.0.0', webhook: { url, events: ['listen'] } },
      'E_INSECURE',
      '',
    ],
    ['a webhook over plain HTTP elsewhere', { webhook: { url: 'http://app.internal/' } }, 'E_INSECURE', 'app.internal'],
    ['a webhook without an address', { webhook: { secret: 'x'.repeat(16) } }, 'E_OPTION_INVALID', 'webhook.url'],
    ['an empty webhook', { webhook: {} }, 'E_OPTION_INVALID', 'webhook.url'],
    ['another scheme', { webhook: { url: 'file:///etc/passwd' } }, 'E_OPTION_INVALID', 'http:// or https://'],
    ['an event that nobody knows', { webhook: { url, events: ['conect'] } }, 'E_OPTION_INVALID', 'one of connect'],
    ['a short secret', { webhook: { url, secret: 'short' } }, 'E_OPTION_INVALID', 'at least 16 bytes'],
    [
      'a header that frames the request',
      { webhook: { url, headers: ['Content-Length'] } },
      'E_OPTION_INVALID',
      'HTTP itself',
    ],
    [
      'a header that signs the request',
      { webhook: { url, headers: ['webhook-signature'] } },
      'E_OPTION_INVALID',
      'HTTP itself',
    ],
    ['a pattern that is none', { webhook: { url, published: ['a b'] } }, 'E_OPTION_INVALID', 'a pattern'],
    ['occupancy of no pattern', { webhook: { url, occupancy: ['a b'] } }, 'E_OPTION_INVALID', 'a pattern'],
    ['another way to fail', { webhook: { url, failure: 'ajar' } }, 'E_OPTION_INVALID', 'closed, open'],
  ])('refuse %s', (_, options, code, reason) => {
    const create = () => createServer({ logLevel: 'silent', ...options })
    expect(create).toThrow(expect.objectContaining({ code, message: expect.stringContaining(reason) }))
  })
})
