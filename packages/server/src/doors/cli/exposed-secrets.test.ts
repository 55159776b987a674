import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { OPTIONS } from '../options/table.js'
import { addOptionFlags, exposedSecrets } from './option-flags.js'

const SECRET = 'a-secret-of-more-than-thirty-two-bytes'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-exposed-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function exposed(args: readonly string[], env: NodeJS.ProcessEnv = {}): readonly string[] {
  const command = new Command()
  addOptionFlags(command, OPTIONS)
  return exposedSecrets(command.parse(args, { from: 'user' }), OPTIONS, env)
}

function file(name: string, content: string, mode: number): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  chmodSync(path, mode)
  return path
}

it.each([
  ['--api-key', SECRET, '--api-key; use --api-key-file'],
  ['--jwt-secret', SECRET, '--jwt-secret; use --jwt-secret-file'],
  ['--broker', 'redis://:sesame@host:6379', '--broker; use '],
])('tells of %s on the command line, and not what it is', (flag, value, text) => {
  const [warning = '', ...others] = exposed([flag, value])
  expect(warning).toContain(text)
  expect(warning).not.toContain(value)
  expect(others).toEqual([])
})

it('tells of files that everybody may read', () => {
  const open = file('open', SECRET, 0o644)
  expect(exposed(['--api-key-file', open, '--jwt-secret-file', file('closed', SECRET, 0o640)])).toEqual([
    `every user of this machine can read ${open} (apiKeys); chmod o-r ${open}`,
  ])
  expect(exposed([], { WEBMQ_JWT_SECRET_FILE: open })).toHaveLength(1)
  const key = file('key.pem', 'a private key', 0o604)
  expect(exposed(['--tls-cert', open, '--tls-key', key])).toEqual([expect.stringContaining(`${key} (tls.keyFile)`)])
  const config = file('webmq.json', JSON.stringify({ jwt: { secret: SECRET } }), 0o644)
  expect(exposed(['--config', config])).toEqual([expect.stringContaining(`${config} (jwt.secret)`)])
})

it('says nothing of what is no secret, or is in the environment', () => {
  const config = file('harmless.json', JSON.stringify({ port: 1, jwt: { issuer: 'me' } }), 0o644)
  const args = ['--config', config, '--broker', 'redis://host:6379', '--jwks', 'https://id.example.com/keys']
  expect(exposed(args, { WEBMQ_JWT_SECRET: SECRET, WEBMQ_API_KEY: SECRET })).toEqual([])
})
