import { join } from 'node:path'
import { build } from 'esbuild'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createServer } from 'webmq-server'
import { startChromium } from '../chromium.js'
import { ROOT } from './blocks.js'
import { blocksFor } from './examples.js'

const { exampleOf, examplesOf } = blocksFor(import.meta.url)

const PAGE = 'client/recipes.md'
const MAX_LINES = 60

const server = createServer({
  port: 0,
  logLevel: 'silent',
  history: ['chat.#=100,1h', 'builds.#=100,1h'],
  closeTimeoutMs: 500,
})
let browser: Browser
let context: BrowserContext
let address = ''

beforeAll(async () => {
  const [{ port }, started] = await Promise.all([server.start(), startChromium()])
  address = `http://127.0.0.1:${port}`
  browser = started
  // One profile, in which a later page finds what an earlier one has stored.
  context = await browser.newContext()
})

afterAll(async () => {
  await browser?.close()
  await server.stop({ drainMs: 0 })
})

const bundles = new Map<string, string>()

async function bundleOf(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, loader: 'tsx', resolveDir: join(ROOT, 'packages/client') },
    jsx: 'automatic',
    bundle: true,
    format: 'esm',
    target: 'es2022',
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/** A page of the server's origin with the program of a recipe and its HTML. */
async function open(name: string, user = '', prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const code = bundles.get(name) ?? (await bundleOf(exampleOf(PAGE, name).code))
  bundles.set(name, code)
  const page = await context.newPage()
  await prepare?.(page)
  await page.goto(`${address}/health?name=${user}`)
  await page.setContent(exampleOf(PAGE, `${name}-page`).code)
  await page.addScriptTag({ type: 'module', content: code })
  return page
}

it('chat: two pages see each other, and a third sees what was said before', async () => {
  const [ada, bob] = await Promise.all([open('chat', 'ada'), open('chat', 'bob')])
  await ada.fill('input', 'hello')
  await ada.click('button')
  await bob.getByText('ada: hello').waitFor()
  const late = await open('chat')
  await late.getByText('ada: hello').waitFor()
  await Promise.all([ada, bob, late].map((page) => page.close()))
})

it('presence: the list follows who comes and goes', async () => {
  const ada = await open('presence', 'ada')
  await ada.getByText('ada').waitFor()
  const bob = await open('presence', 'bob')
  await bob.getByText('ada').waitFor()
  await ada.getByText('bob').waitFor()
  await bob.close()
  await ada.getByText('bob').waitFor({ state: 'detached' })
  await ada.close()
})

it('form: what was sent without a connection arrives after a reload', async () => {
  const arrived = new Promise<unknown>((resolve) => void server.listen('forms.*', resolve))
  const offline = await open('form', '', async (page) => {
    await page.routeWebSocket(/./, (socket) => void socket.close())
  })
  await offline.fill('input', 'important')
  await offline.click('button')
  await offline.getByText('1 waiting').waitFor()
  await offline.close()
  const later = await open('form')
  await later.getByText('all sent').waitFor()
  expect(await arrived).toEqual({ text: 'important' })
  await later.close()
})

it('unread: what came since the last visit is counted, also while the page was closed', async () => {
  const first = await open('unread')
  await first.getByText('chat.random.message: 0').waitFor()
  await expect.poll(() => first.evaluate(() => localStorage.getItem('chat.random.message'))).not.toBeNull()
  await server.publish('chat.random.message', 'one')
  await first.getByText('chat.random.message: 1').waitFor()
  await first.close()
  await server.publish('chat.random.message', 'two')
  const second = await open('unread')
  await second.getByText('chat.random.message: 2').click()
  await second.getByText('chat.random.message: 0').waitFor()
  await second.close()
  const third = await open('unread')
  await third.getByText('chat.random.message: 0').waitFor()
  await server.publish('chat.random.message', 'three')
  await third.getByText('chat.random.message: 1').waitFor()
  await third.close()
})

it('docs/client/outbox.md: a message is in the list at once, survives a reload, and arrives once', async () => {
  const arrived: unknown[] = []
  server.listen('chat.lobby.message', (payload) => void arrived.push(payload))
  const show = async (prepare?: (page: Page) => Promise<void>) => {
    const page = await context.newPage()
    await prepare?.(page)
    await page.goto(`${address}/health`)
    await page.setContent('<main></main>')
    await page.addScriptTag({ type: 'module', content: await bundleOf(exampleOf('client/outbox.md', 'listed').code) })
    return page
  }
  const offline = await show((page) => page.routeWebSocket(/./, (socket) => void socket.close()))
  await offline.fill('input', 'kept')
  await offline.click('button')
  await offline.getByText('kept pending').waitFor()
  await offline.close()
  const later = await show()
  await expect.poll(() => arrived).toEqual(['kept'])
  await later.getByText('kept').waitFor()
  await later.fill('input', 'live')
  await later.click('button')
  await later.getByText('live', { exact: true }).waitFor()
  await expect
    .poll(() =>
      later
        .locator('li')
        .filter({ hasText: /kept|live/ })
        .allInnerTexts(),
    )
    .toEqual(['kept', 'live'])
  expect(arrived).toEqual(['kept', 'live'])
  await later.close()
})

it('upload: the other page gets the same bytes', async () => {
  const listenCount = () => server.stats().listenCount
  await expect.poll(listenCount).toBe(0)
  const [sender, receiver] = await Promise.all([open('upload'), open('upload')])
  await expect.poll(listenCount).toBe(2)
  const bytes = Buffer.from(Uint8Array.from({ length: 100_000 }, (_, index) => index % 251))
  await sender.setInputFiles('input', { name: 'data.bin', mimeType: 'application/octet-stream', buffer: bytes })
  const link = receiver.getByText('data.bin')
  await link.waitFor()
  const received = await receiver.evaluate(
    async (url) => {
      const response = await fetch(url)
      return Array.from(new Uint8Array(await response.arrayBuffer()))
    },
    (await link.getAttribute('href')) ?? '',
  )
  expect(Buffer.from(received).equals(bytes)).toBe(true)
  await Promise.all([sender.close(), receiver.close()])
})

/** Lines that a program prints on a page of the server's origin, where no WebSocket gets through. */
async function linesOf(code: string): Promise<readonly string[]> {
  const page = await context.newPage()
  onTestFinished(() => page.close())
  const lines: string[] = []
  page.on('console', (message) => void lines.push(message.text()))
  await page.routeWebSocket(/./, (socket) => void socket.close())
  await page.goto(`${address}/health`)
  await page.addScriptTag({ type: 'module', content: code })
  return lines
}

it('docs/sse.md: events are messages', async () => {
  const lines = await linesOf(exampleOf('sse.md', 'events').code)
  await expect
    .poll(async () => {
      await server.publish('news', 'one')
      return lines
    })
    .toContain('news one')
})

it('docs/sse.md: events are the text of a stream', async () => {
  const lines = await linesOf(exampleOf('sse.md', 'stream-events').code)
  const stream = await server.stream('builds.1842.log')
  await stream.append('compiling ')
  await stream.append('done')
  await stream.end()
  await expect.poll(() => lines).toEqual(['compiling done end'])
})

it('docs/sse.md: the library listens without a WebSocket', async () => {
  const { code } = exampleOf('sse.md', 'library')
  const listening = `import { listen } from 'webmq-client'\nlisten('news', (payload) => console.log('heard', payload))`
  const lines = await linesOf(await bundleOf(`${code}\n${listening}`))
  await expect
    .poll(async () => {
      await server.publish('news', 'two')
      return lines
    })
    .toContain('heard two')
})

it('every recipe is run, and is short', () => {
  const recipes = examplesOf(PAGE, 'ts')
  expect(recipes.map(({ name }) => name).toSorted()).toEqual(['chat', 'form', 'presence', 'unread', 'upload'])
  for (const { code } of recipes) expect(code.split('\n').length).toBeLessThan(MAX_LINES)
})
