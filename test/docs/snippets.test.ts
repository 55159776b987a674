import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { createServer } from 'webmq-server'
import { freePort, obtainBalancer } from 'webmq-services'
import { WebSocket } from 'ws'
import { encodeEnvelope } from '../../packages/server/src/adapters/brokers/remote/envelope.js'
import { signedToken, TOKEN_SECRET } from '../signed-token.js'
import { ROOT } from './blocks.js'
import { blocksFor } from './examples.js'

const { examples, exampleOf } = blocksFor(import.meta.url)
const run = promisify(execFile)

it('packages/services/README.md: a Redis is started, and ends', async () => {
  const { code } = exampleOf('packages/services/README.md', 'redis')
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', code], { cwd: ROOT })
  expect(stdout).toMatch(/^redis:\/\/127\.0\.0\.1:\d+$/m)
})

it('docs/client/svelte.md: the component compiles without a warning', async () => {
  const { resolve } = createRequire(join(ROOT, 'packages/client/package.json'))
  const { compile } = await import(pathToFileURL(resolve('svelte/compiler')).href)
  const { warnings } = compile(exampleOf('client/svelte.md', 'component').code, { generate: 'client' })
  expect(warnings).toEqual([])
})

it('docs/protocol.md: the grammar names no rule that it does not have', () => {
  const { code } = exampleOf('protocol.md', 'grammar')
  const text = code.replaceAll(/;.*$/gm, '').replaceAll(/%s?"[^"]*"|"[^"]*"|<[^>]*>|%x[\w.-]+/g, '')
  const defined = new Set([...text.matchAll(/^([a-z-]+) +=/gm)].map(([, name = '']) => name))
  const used = new Set(text.match(/[A-Za-z][\w-]*/g))
  const core = ['SP', 'LF', 'DIGIT', 'ALPHA', 'VCHAR', 'OCTET']
  const missing = [...used].filter((name) => !defined.has(name) && !core.includes(name))
  expect([defined.size > 20, missing]).toEqual([true, []])
})

it.each(examples(({ language }) => language === 'mermaid'))('$page:$line is a sequence diagram', ({ code }) => {
  const [first, ...lines] = code.split('\n').map((line) => line.trim())
  expect(first).toBe('sequenceDiagram')
  const names = lines.flatMap((line) => /^participant (\w+) as .+/.exec(line)?.[1] ?? [])
  const of = `(${names.join('|')})`
  const statement = new RegExp(
    `^((alt|opt|loop|else) .+|end|participant \\w+ as .+|${of}--?(>>|x|\\))${of}: .+|Note (over|right of|left of) ${of}(,${of})?: .+)$`,
  )
  expect(lines.filter((line) => !statement.test(line))).toEqual([])
  const count = (begins: RegExp) => lines.filter((line) => begins.test(line)).length
  expect(count(/^end$/)).toBe(count(/^(alt|opt|loop) /))
})

it('packages/server/README.md: a client connects through nginx, with the origin of its page', async () => {
  const server = createServer({ port: 0, logLevel: 'silent', jwt: { secret: TOKEN_SECRET } })
  const [{ port: target }, port, { file }] = await Promise.all([server.start(), freePort(), obtainBalancer('nginx')])
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const folder = mkdtempSync(join(tmpdir(), 'webmq-nginx-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const location = exampleOf('packages/server/README.md', 'nginx').code.replace('127.0.0.1:8080', `127.0.0.1:${target}`)
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid nginx.pid; error_log stderr; events {}
    http { access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi; server { listen 127.0.0.1:${port}; ${location} } }`,
  )
  const nginx = spawn(file, ['-p', folder, '-e', 'stderr', '-c', 'nginx.conf'], { cwd: folder, stdio: 'inherit' })
  const ended = once(nginx, 'close')
  onTestFinished(async () => {
    nginx.kill('SIGTERM')
    await ended
  })

  class OfPage extends WebSocket {
    constructor(url: string, protocols: string | string[]) {
      super(url, protocols, { origin: `http://127.0.0.1:${port}` })
    }
  }
  const url = `ws://127.0.0.1:${port}/ws`
  const client = new WebMQClient({ url, WebSocket: OfPage, token: () => signedToken('ada', 600) })
  onTestFinished(() => client.close({ flushMs: 0 }))
  client.on('error', () => undefined)
  const heard = new Promise((resolve) => void client.listen('a', resolve))
  await client.publish('a', { text: 'hi' })
  expect(await heard).toEqual({ text: 'hi' })
})

it('docs/running-brokers.md: a program finds the payload in the bytes of a node', async () => {
  const { code } = exampleOf('docs/running-brokers.md', 'payload')
  const payloadOf = new Function(`${code}\nreturn payloadOf`)() as (bytes: Uint8Array) => Uint8Array
  const payload = Buffer.from('{"text":"hi"}')
  const plain = { key: 'chat.1', payload, isBinary: false }
  const attributed = { ...plain, attributes: { timeMs: Date.now(), userId: 'ada' } }
  const withId = { ...attributed, dedupeKey: 'id-1' }
  for (const message of [plain, attributed, withId]) {
    for (const key of [undefined, 'chat.1']) {
      const bytes = encodeEnvelope('node', message as never, key)
      expect(Buffer.from(payloadOf(bytes)).toString()).toBe('{"text":"hi"}')
    }
  }
  expect(payloadOf(payload)).toBe(payload)
})
