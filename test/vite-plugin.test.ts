import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createServer, type ViteDevServer } from 'vite'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { eventStreams } from 'webmq-client/sse'
import { type WebMQPluginOptions, webmq } from 'webmq-client/vite'
import { freePort } from 'webmq-services'
import { WebSocket } from 'ws'
import { startChromium } from './chromium.js'

let root: string
let vite: ViteDevServer | undefined
let client: WebMQClient | undefined
let target: string

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'webmq-vite-'))
  target = `http://127.0.0.1:${await freePort()}`
})

afterEach(async () => {
  await client?.close({ flushMs: 0 })
  await vite?.close()
  client = vite = undefined
  await rm(root, { recursive: true })
})

/** As `npm install webmq-server` leaves it. */
const install = () =>
  symlink(fileURLToPath(new URL('../node_modules', import.meta.url)), path.join(root, 'node_modules'))

/** Starts a dev server as `vite` does, with the plugin. Returns the address of its page. */
async function serve(options: WebMQPluginOptions): Promise<string> {
  vite = await createServer({
    configFile: false,
    root,
    logLevel: 'silent',
    plugins: [webmq({ target, ...options })],
    // The packages are linked, and two tests must not share a cache.
    cacheDir: path.join(root, '.vite'),
    server: { port: await freePort(), host: '127.0.0.1', fs: { strict: false } },
  })
  await vite.listen()
  return vite.resolvedUrls?.local[0] ?? ''
}

const isUp = () =>
  fetch(`${target}/health`).then(
    ({ ok }) => ok,
    () => false,
  )

it('starts webmq-server with the dev server, passes /ws on, and ends it with the dev server', async () => {
  await install()
  const page = await serve({ start: ['--history', 'log.#=10', '--log-level', 'error'] })
  client = new WebMQClient({ url: `${page.replace('http', 'ws')}ws`, WebSocket })
  const received: unknown[] = []
  await client.listen('log.1', (payload) => received.push(payload)).ready
  const { position } = await client.publish('log.1', 'hi')
  await expect.poll(() => received).toEqual(['hi'])
  expect(position).toBeDefined()
  // The new dev server is there before the old one is closed, and goes on with the same webmq-server.
  await vite?.restart()
  expect(await isUp()).toBe(true)
  expect(await client.publish('log.1', 'again')).toMatchObject({ position: expect.stringContaining(':2.') })
  await vite?.close()
  await expect.poll(isUp).toBe(false)
})

// A plain `/ws` of Vite is a prefix: the app's own /wsfoo was answered by WebMQ.
it('passes on its own paths alone', async () => {
  await writeFile(path.join(root, 'index.html'), '<!doctype html><title>app</title>')
  const page = await serve({ eventStreams: true })
  const answers = async (name: string) => (await fetch(`${page}${name}`, { headers: { accept: 'text/html' } })).status
  // Nothing runs at the target: what is passed on is answered by 502.
  for (const name of ['ws', 'ws?a=b', 'sse?listen=a', 'health', 'api/publish']) expect(await answers(name)).toBe(502)
  for (const name of ['wsfoo', 'ws/foo', 'sse-demo', 'healthcare', 'api/published'])
    expect(await answers(name)).toBe(200)
})

it('prints nothing of connections whose tabs were closed', () => {
  const error = vi.fn()
  const logger = { error }
  webmq().configResolved({ root, logger })
  webmq().configResolved({ root, logger })
  const failure = (code: string) => ({ error: Object.assign(new Error(code), { code }) })
  logger.error('ws proxy error:', failure('ECONNRESET'))
  logger.error('ws proxy socket error:', failure('EPIPE'))
  logger.error('ws proxy error:', failure('ECONNREFUSED'))
  logger.error('http proxy error:', failure('ECONNRESET'))
  expect(error.mock.calls.map(([text]) => text)).toEqual(['ws proxy error:', 'http proxy error:'])
})

it('serves a page that listens and publishes in Chromium', async () => {
  await install()
  await writeFile(path.join(root, 'index.html'), '<!doctype html><script type="module" src="/main.js"></script>')
  await writeFile(
    path.join(root, 'main.js'),
    `import { listen, publish, setup } from 'webmq-client'
    setup({ url: '/ws' })
    listen('chat.*', ({ text }) => { document.title = text })
    publish('chat.1', { text: 'arrived' })`,
  )
  const [url, browser] = await Promise.all([serve({ start: ['--log-level', 'error'] }), startChromium()])
  try {
    const page = await browser.newPage()
    await page.goto(url)
    await page.waitForFunction(() => document.title === 'arrived')
  } finally {
    await browser.close()
  }
})

it('passes event streams on', async () => {
  await install()
  const page = await serve({ start: ['--log-level', 'error'], eventStreams: true })
  client = new WebMQClient({ url: `${page.replace('http', 'ws')}ws`, WebSocket: eventStreams({ WebSocket: null }) })
  const received: unknown[] = []
  await client.listen('a', (payload) => received.push(payload)).ready
  await client.publish('a', 1)
  await expect.poll(() => received).toEqual([1])
})

it('says what to install where webmq-server is absent', async () => {
  await expect(serve({ start: true })).rejects.toThrow(
    `needs webmq-server in ${root}: npm install --save-dev webmq-server`,
  )
})
