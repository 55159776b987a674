import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { createServer as createVite } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { WebMQClient } from 'webmq-client'
import { createServer as createWebMQ } from 'webmq-server'
import { freePort } from 'webmq-services'
import { startChromium } from './chromium.js'

const PAGE = `<!doctype html><title>app</title>
<script type="module">import { WebMQClient } from '/index.js'; globalThis.WebMQClient = WebMQClient</script>`

interface AppGlobals {
  readonly WebMQClient: typeof WebMQClient
}

/** The client as an app in development bundles it. */
async function bundleClient(): Promise<ReadonlyMap<string, string>> {
  const { outputFiles } = await build({
    entryPoints: { index: new URL('../packages/client/src/development.ts', import.meta.url).pathname },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
    outdir: '/',
  })
  return new Map(outputFiles.map(({ path, text }) => [path, text]))
}

/** Browsers tell a script 1006 and nothing else; the client asks the endpoint over HTTP. */
describe('a page whose upgrade is refused', () => {
  const servers: Server[] = []
  let browser: Browser
  let origin: string
  /** Answers plain requests as WebMQ does, and refuses every upgrade. */
  let webmq: string
  let foreign: string

  async function listen(server: Server): Promise<string> {
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  beforeAll(async () => {
    const files = await bundleClient()
    origin = `http://${await listen(
      createServer(({ url = '' }, response) => {
        const file = files.get(url)
        response.setHeader('content-type', file === undefined ? 'text/html' : 'text/javascript')
        response.end(file ?? PAGE)
      }),
    )}`
    webmq = await listen(
      createServer(({ url, headers }, response) => {
        response.setHeader('access-control-allow-origin', '*')
        response.setHeader('content-type', 'application/json')
        const originAllowed = headers.origin !== origin
        response.statusCode = url === '/ws' ? 426 : 404
        const code = url === '/ws' ? 'E_HANDSHAKE_INVALID' : 'E_PATH_NOT_FOUND'
        response.end(JSON.stringify({ code, server: 'webmq', path: '/ws', originAllowed }))
      }).on('upgrade', (_request, socket) => {
        // A browser may reset what has refused it.
        socket.on('error', () => undefined)
        socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n')
      }),
    )
    foreign = await listen(createServer((_request, response) => response.end('<html>another server</html>')))
    browser = await startChromium()
  })

  afterAll(async () => {
    await browser?.close()
    for (const server of servers) server.close()
  })

  async function open(at = origin): Promise<{ readonly page: Page; readonly warnings: string[] }> {
    const page = await browser.newPage()
    const warnings: string[] = []
    page.on('console', (message) => {
      // Chromium has lines of its own.
      if (message.text().startsWith('webmq')) warnings.push(message.text())
    })
    await page.goto(at)
    return { page, warnings }
  }

  /** The last error of a client of that URL, once a reason was found. */
  function reasonOf(page: Page, url: string): Promise<string> {
    return page.evaluate(async (clientUrl) => {
      const { WebMQClient } = globalThis as unknown as AppGlobals
      const client = new WebMQClient({ url: clientUrl, reconnect: { minMs: 50, maxMs: 50 } })
      client.listen('a', () => undefined)
      for (let tries = 0; tries < 400; tries++) {
        const { lastError, attempt } = client.status
        // Without a reason the text ends with the code and the link; a later attempt tells the reason too.
        if (lastError && !/\(1006\)( \(\S+\))?$/.test(lastError.message) && (attempt ?? 0) > 2) break
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
      const message = client.status.lastError?.message ?? ''
      await client.close()
      return message
    }, url)
  }

  it.each<[string, () => Promise<string> | string, () => string]>([
    ['its origin', () => `ws://${webmq}/ws`, () => `origin not allowed: start the server with --origin ${origin}`],
    ['its path', () => `ws://${webmq}/live`, () => 'wrong path: the endpoint is /ws'],
    ['its own server', () => '/ws', () => `${origin}/ws is answered by the page's own server`],
    ['another server', () => `ws://${foreign}/ws`, () => 'not a WebMQ server'],
    ['nobody', async () => `ws://127.0.0.1:${await freePort()}/ws`, () => 'nothing answers at'],
  ])('is told that it is because of %s, in one line', async (_what, url, reason) => {
    const { page, warnings } = await open()
    expect(await reasonOf(page, await url())).toContain(reason())
    expect(warnings).toEqual([expect.stringContaining(reason())])
    await page.close()
  })

  it('passes the proxy of Vite, and is told when no server is behind it', async () => {
    const server = createWebMQ({ port: 0, logLevel: 'silent' })
    const { port } = await server.start()
    const target = `http://127.0.0.1:${port}`
    const vite = await createVite({
      configFile: false,
      logLevel: 'silent',
      server: { host: '127.0.0.1', port: 0, proxy: { '/ws': { target, ws: true }, '^/(?!ws$)': { target: origin } } },
    })
    await vite.listen()
    const { page, warnings } = await open(vite.resolvedUrls?.local[0])
    const state = await page.evaluate(async () => {
      const { WebMQClient } = globalThis as unknown as AppGlobals
      const client = new WebMQClient({ url: '/ws' })
      await client.connect()
      const { state: reached } = client
      await client.close()
      return reached
    })
    expect(state).toBe('connected')
    await server.stop({ drainMs: 0 })
    const reason = '/ws answers 502: is the server behind this proxy running?'
    expect(await reasonOf(page, '/ws')).toContain(reason)
    expect(warnings).toEqual([expect.stringContaining(reason)])
    await page.close()
    await vite.close()
  })

  it('cannot publish what JSON cannot say', async () => {
    const { page } = await open()
    const messages = await page.evaluate(async (url) => {
      const { WebMQClient } = globalThis as unknown as AppGlobals
      const client = new WebMQClient({ url })
      const payloads = [document.body, { file: new Blob(['x']) }, [new FormData()]]
      const refused = payloads.map((payload) => client.publish('a', payload).catch(({ message }: Error) => message))
      const results = await Promise.all(refused)
      await client.close({ flushMs: 0 })
      return results
    }, `ws://${webmq}/ws`)
    expect(messages).toEqual(
      ['payload is a HTMLBodyElement', 'payload.file is a Blob', 'payload[0] is a FormData'].map((text) =>
        expect.stringContaining(text),
      ),
    )
    await page.close()
  })
})
