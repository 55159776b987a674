import { join } from 'node:path'
import { build } from 'esbuild'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createServer } from 'webmq-server'
import type { NamedBlock } from '../../scripts/lib/docs-readers.mjs'
import { startChromium } from '../chromium.js'
import { ROOT } from './blocks.js'
import { blocksFor } from './examples.js'

const { examplesOf } = blocksFor(import.meta.url)

const PAGE = 'client/recipes.md'
const MAX_LINES = 60

const server = createServer({
  port: 0,
  logLevel: 'silent',
  history: ['chat.#=100,1h'],
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

function recipe(name: string): NamedBlock {
  const found = examplesOf(PAGE, 'ts').find((example) => example.name === name)
  if (found === undefined) throw new TypeError(`no recipe ${name}`)
  return found
}

const bundles = new Map<string, string>()

async function bundleOf(name: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: recipe(name).code, loader: 'ts', resolveDir: join(ROOT, 'packages/client') },
    bundle: true,
    format: 'esm',
    target: 'es2022',
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/** A page of the server's origin with the program and the HTML before it. */
async function open(name: string, html: string, user = '', prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const code = bundles.get(name) ?? (await bundleOf(name))
  bundles.set(name, code)
  const page = await context.newPage()
  await prepare?.(page)
  await page.goto(`${address}/health?name=${user}`)
  await page.setContent(html)
  await page.addScriptTag({ type: 'module', content: code })
  return page
}

it('chat: two pages see each other, and a third sees what was said before', async () => {
  const html = '<ol></ol><form><input name="text" required /><button>Send</button></form>'
  const [ada, bob] = await Promise.all([open('chat', html, 'ada'), open('chat', html, 'bob')])
  await ada.fill('input', 'hello')
  await ada.click('button')
  await bob.getByText('ada: hello').waitFor()
  const late = await open('chat', html)
  await late.getByText('ada: hello').waitFor()
  await Promise.all([ada, bob, late].map((page) => page.close()))
})

it('presence: the list follows who comes and goes', async () => {
  const ada = await open('presence', '<ul></ul>', 'ada')
  await ada.getByText('ada').waitFor()
  const bob = await open('presence', '<ul></ul>', 'bob')
  await bob.getByText('ada').waitFor()
  await ada.getByText('bob').waitFor()
  await bob.close()
  await ada.getByText('bob').waitFor({ state: 'detached' })
  await ada.close()
})

it('form: what was sent without a connection arrives after a reload', async () => {
  const arrived = new Promise<unknown>((resolve) => void server.listen('forms.*', resolve))
  const html = '<form><input name="text" required /><button>Save</button></form><output></output>'
  const offline = await open('form', html, '', async (page) => {
    await page.routeWebSocket(/./, (socket) => void socket.close())
  })
  await offline.fill('input', 'important')
  await offline.click('button')
  await offline.getByText('1 waiting').waitFor()
  await offline.close()
  const later = await open('form', html)
  await later.getByText('all sent').waitFor()
  expect(await arrived).toEqual({ text: 'important' })
  await later.close()
})

it('upload: the other page gets the same bytes', async () => {
  const html = '<input type="file" /><progress value="0"></progress><p></p>'
  const [sender, receiver] = await Promise.all([open('upload', html), open('upload', html)])
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

it('every recipe is run, and is short', () => {
  const recipes = examplesOf(PAGE, 'ts')
  expect(recipes.map(({ name }) => name).toSorted()).toEqual(['chat', 'form', 'presence', 'upload'])
  for (const { code } of recipes) expect(code.split('\n').length).toBeLessThan(MAX_LINES)
})
