import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createServer, type WebMQServer } from 'webmq-server'
import { blocksFor } from './examples.js'

const { examplesOf } = blocksFor(import.meta.url)

const KEY = 'key-of-the-examples-in-the-docs'
const run = promisify(execFile)

let server: WebMQServer
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  server = createServer({ port: 0, apiKeys: [KEY], logLevel: 'error' })
  const { port } = await server.start()
  env = { ...process.env, WEBMQ: `http://127.0.0.1:${port}`, KEY }
})

afterAll(async () => {
  await server.stop({ drainMs: 0 })
})

const hasCurl = await run('curl', ['--version']).then(
  () => true,
  () => false,
)
if (!hasCurl) console.log('The examples of docs/http-api.md and docs/sse.md are skipped: they need curl.')

describe('docs/sse.md', () => {
  it.runIf(hasCurl).each(examplesOf('sse.md', 'sh'))('$name works as it is written', async ({ code }) => {
    const { stdout } = await run('sh', ['-ec', code], { env })
    expect(stdout).toContain('event: end')
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
