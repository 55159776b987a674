import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createServer, type WebMQServer } from 'webmq-server'
import { blocksFor } from './examples.js'

const { exampleOf, examplesOf } = blocksFor(import.meta.url)

const KEY = 'key-of-the-examples-in-the-docs'
const run = promisify(execFile)

const folder = mkdtempSync(join(tmpdir(), 'webmq-docs-'))
let server: WebMQServer
let open: WebMQServer
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  server = createServer({ port: 0, apiKeys: [KEY], logLevel: 'error' })
  // A page's server without tokens, as in the examples of streams.
  open = createServer({ port: 0, logLevel: 'error' })
  const { port } = await server.start()
  await open.start()
  env = { ...process.env, WEBMQ: `http://127.0.0.1:${port}`, KEY }
  writeFileSync(join(folder, 'Makefile'), 'all:\n\t@echo compiling\n')
})

afterAll(async () => {
  await Promise.all([server.stop({ drainMs: 0 }), open.stop({ drainMs: 0 })])
  rmSync(folder, { recursive: true })
})

const hasCurl = await run('curl', ['--version']).then(
  () => true,
  () => false,
)
if (!hasCurl)
  console.log('The examples of docs/http-api.md, docs/sse.md and docs/streams.md are skipped: they need curl.')

/** Runs commands that are for port 8080, until they have printed something; returns that. */
function outputOf(code: string, until: RegExp): { readonly printed: Promise<string> } {
  const here = code.replaceAll(/(127\.0\.0\.1|localhost):8080/g, `127.0.0.1:${open.address?.port}`)
  const child = spawn('sh', ['-ec', here.replaceAll('curl ', 'curl --silent --show-error --fail-with-body ')], {
    cwd: folder,
    // So that curl ends, too.
    detached: true,
  })
  onTestFinished(() => {
    if (child.exitCode === null) process.kill(-(child.pid ?? 0))
  })
  let output = ''
  const printed = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (part) => {
        output += part
        if (until.test(output)) resolve(output)
      })
    }
    child.on('close', () => (until.test(output) ? resolve(output) : reject(new Error(`it printed ${output}`))))
  })
  return { printed }
}

describe('docs/sse.md', () => {
  it.runIf(hasCurl)('stream works as it is written', async () => {
    const { stdout } = await run('sh', ['-ec', exampleOf('sse.md', 'stream').code], { env })
    expect(stdout).toContain('event: end')
  })

  it.runIf(hasCurl)('listen prints messages as they are shown', async () => {
    const { printed } = outputOf(exampleOf('sse.md', 'listen').code, /^data: .*"hi"/m)
    const publishing = setInterval(() => void open.publish('chat.42.message', { text: 'hi' }), 100)
    onTestFinished(() => clearInterval(publishing))
    const [id = '', data] = exampleOf('sse.md', 'listen-event').code.split('\n')
    expect(id).toMatch(/^id: \w+:\w+$/)
    const [shownId] = new RegExp(`^id: .*(?=\n${data?.replaceAll(/[{}]/g, '\\$&')}$)`, 'm').exec(await printed) ?? []
    expect(shownId).toMatch(/^id: [\w-]+:\w+/)
  })
})

describe('docs/streams.md', () => {
  it.runIf(hasCurl)('the output of a program is a stream, and has an address', async () => {
    expect(await outputOf(exampleOf('streams.md', 'post').code, /position/).printed).toContain('"status":"end"')
    const read = exampleOf('streams.md', 'durable-read').code.replaceAll('chat.42.answer', 'chat.42.log')
    const printed = await outputOf(read, /compiling\n.*compiling/s).printed
    expect(printed).toMatch(/^data:/m)
  })

  it.runIf(hasCurl)('another program writes a stream that clients read', async () => {
    await outputOf(`${exampleOf('streams.md', 'durable-write').code}\necho done`, /^done$/m).printed
    const read = exampleOf('streams.md', 'durable-read').code.split('\n')[0] ?? ''
    const printed = await outputOf(read.replace('chat.42.answer', 'builds.7'), /\]/).printed
    expect(JSON.parse(printed)).toEqual([{ step: 'compile' }, { step: 'test' }])
  })
})

describe('docs/http-api.md', () => {
  it.runIf(hasCurl).each(examplesOf('http-api.md', 'sh'))('$name works as it is written', async ({ code }) => {
    const { stdout } = await run('sh', ['-ec', code], { env })
    for (const answer of stdout.trim().split('\n')) expect(JSON.parse(answer)).not.toHaveProperty('code')
  })

  it.each(examplesOf('http-api.md', 'ts'))('$name works as it is written', async ({ code }) => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', code], { env })
    expect(Number(stdout)).toBeGreaterThan(0)
  })
})
