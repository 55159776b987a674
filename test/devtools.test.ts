import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createServer, type WebMQServer } from 'webmq-server'
import { expectAccessible } from './accessible.js'
import { startChromium } from './chromium.js'

/** A page of an app in development, which notes what its client tells it. */
const PAGE = `
  import { listen, setup } from 'webmq-client'
  import { devtools } from 'webmq-client/devtools'
  const seen = { states: [], gaps: [], payloads: [], causes: [], remove: undefined }
  window.seen = seen
  const options = { url: '/ws', token: ({ cause }) => { seen.causes.push(cause); return 'any' } }
  const client = setup(options)
  seen.remove = devtools()
  seen.replace = () => {
    setup(options)
    seen.remove = devtools()
  }
  client.on('status', ({ state }, previous) => state !== previous.state && seen.states.push(state))
  client.on('gap', ({ reason }) => seen.gaps.push(reason))
  client.on('error', () => undefined)
  listen('news.#', (payload) => seen.payloads.push(payload))
`

/** A limit for a busy machine, not a wait. */
const EVENTUALLY = { timeout: 20_000, interval: 50 }

interface Seen {
  readonly states: string[]
  readonly gaps: string[]
  readonly payloads: unknown[]
  readonly causes: string[]
  readonly remove: () => void
  readonly replace: () => void
}

describe('the devtools', () => {
  let browser: Browser
  let server: WebMQServer
  let page: Page
  let openPage: (page: Page) => Promise<void>

  beforeAll(async () => {
    server = createServer({ port: 0, logLevel: 'silent' })
    const [{ url }, chromium, bundle] = await Promise.all([
      server.start(),
      startChromium(),
      build({
        stdin: { contents: PAGE, resolveDir: import.meta.dirname },
        bundle: true,
        write: false,
        format: 'esm',
        logLevel: 'error',
      }),
    ])
    browser = chromium
    page = await browser.newPage()
    const address = url.replace(/^ws/, 'http').replace(/\/ws$/, '/')
    // The test moves the time of the page; its network stays as it is.
    await page.clock.install()
    openPage = async (opened) => {
      // Any answer of the server makes a page of its origin.
      await opened.goto(`${address}health`)
      await opened.addScriptTag({ type: 'module', content: bundle.outputFiles[0]?.text ?? '' })
      await opened.locator('summary').click()
      await opened.locator('details[data-state=connected]').waitFor()
    }
    await openPage(page)
    // A client that connects again by itself would do so before the test has published what it misses.
    await page.clock.pauseAt(await page.evaluate(() => Date.now() + 1_000))
  })

  afterAll(async () => {
    await browser?.close()
    await server?.stop({ drainMs: 0 })
  })

  it('are as axe wants them, also on a phone', async () => {
    // Its time passes.
    const other = await browser.newPage()
    await openPage(other)
    await expectAccessible(other, 'webmq-devtools')
    await other.close()
  })

  const seen = <K extends keyof Seen>(name: K) =>
    page.evaluate((member) => (window as unknown as { seen: Seen }).seen[member], name) as Promise<Seen[K]>
  const connected = () => page.locator('details[data-state=connected]').waitFor()
  const press = (trouble: string) => page.locator(`[data-trouble=${trouble}]`).click()
  /** Lets the time of the page pass until the client has tried again, and is connected. */
  const reconnected = () =>
    expect
      .poll(async () => {
        await page.clock.runFor(2_000)
        return await seen('states')
      }, EVENTUALLY)
      .toContain('connected')

  async function delivers(text: string): Promise<void> {
    await expect.poll(() => server.stats().listenCount, EVENTUALLY).toBeGreaterThan(0)
    await server.publish('news.today', text)
    await expect.poll(() => seen('payloads'), EVENTUALLY).toContain(text)
  }

  beforeEach(async () => {
    await page.evaluate(() => {
      const { causes, gaps, states } = (window as unknown as { seen: Seen }).seen
      causes.length = gaps.length = states.length = 0
    })
  })

  it('show the state, the subscriptions with their positions, and the traffic', async () => {
    await delivers('first')
    await page.clock.runFor(1_000)
    const rows = await page
      .locator('tr')
      .evaluateAll((all) => all.map((row) => [...row.children].map(({ textContent }) => textContent).join(' ')))
    expect(rows).toContainEqual(expect.stringMatching(/^news\.# active \S+:\S+ 1 $/))
    expect(rows).toContainEqual(expect.stringMatching(/← message news\.today \S+:\S+ "first" \d+ B$/))
    expect(rows.join('\n'), 'no token').not.toMatch(/→ auth \S+ [^ ]+ \d+ B/)
  })

  it('leave in place what has not changed, so that it can be selected', async () => {
    const pattern = page.locator('td', { hasText: /^news\.#$/ })
    await pattern.evaluate((cell) => cell.setAttribute('data-known', ''))
    await delivers('one more')
    await page.clock.runFor(1_000)
    await page.locator('td', { hasText: '"one more"' }).waitFor()
    expect(await page.locator('td[data-known]').textContent()).toBe('news.#')
  })

  it('rehearse a lost connection: the client resumes', async () => {
    await press('drop')
    await server.publish('news.today', 'missed by nobody')
    await reconnected()
    expect(await seen('states')).toEqual(['reconnecting', 'connected'])
    await expect.poll(() => seen('payloads'), EVENTUALLY).toContain('missed by nobody')
    expect(await seen('gaps')).toEqual([])
  })

  it('rehearse a network that goes silent: the heartbeat finds out, and the client resumes', async () => {
    await press('silence')
    await server.publish('news.today', 'lost at first')
    // The interval of the heartbeat, and the time for its answer.
    await page.clock.runFor(26_000)
    await page.clock.runFor(11_000)
    await reconnected()
    expect(await seen('states')).toEqual(['reconnecting', 'connected'])
    await expect.poll(() => seen('payloads'), EVENTUALLY).toContain('lost at first')
    expect(await seen('gaps')).toEqual([])
  })

  it('rehearse a log that has expired: a gap, and what was missed stays away', async () => {
    await press('expire')
    await server.publish('news.today', 'gone for good')
    await reconnected()
    await expect.poll(() => seen('gaps'), EVENTUALLY).toEqual(['history-expired'])
    await delivers('after the gap')
    expect(await seen('payloads')).not.toContain('gone for good')
  })

  it('rehearse a refused token: the client asks for another one', async () => {
    await press('reject')
    await reconnected()
    expect(await seen('causes')).toEqual(['initial', 'rejected'])
    await delivers('with another token')
  })

  it('rehearse a page without a network, until it is back by itself', async () => {
    await press('offline')
    await server.publish('news.today', 'while offline')
    await page.clock.runFor(8_000)
    expect(await seen('states')).not.toContain('connected')
    await reconnected()
    await expect.poll(() => seen('payloads'), EVENTUALLY).toContain('while offline')
  })

  it('follow a module that is replaced: the panel of the closed client goes, the new one is open', async () => {
    await page.evaluate(() => (window as unknown as { seen: Seen }).seen.replace())
    await connected()
    expect(await page.locator('webmq-devtools').count()).toBe(1)
    expect(await page.locator('webmq-devtools details[open]').count()).toBe(1)
  })

  it('go away when they are removed', async () => {
    await page.evaluate(() => (window as unknown as { seen: Seen }).seen.remove())
    expect(await page.locator('webmq-devtools').count()).toBe(0)
    await delivers('still listening')
  })
})
