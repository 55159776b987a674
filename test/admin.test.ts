import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { presence } from 'webmq-client/parts'
import { createServer, type WebMQServer } from 'webmq-server'
import { freePort } from 'webmq-services'
import { WebSocket } from 'ws'
import { expectAccessible } from './accessible.js'
import { startChromium } from './chromium.js'
import { startServerProcess } from './server-process.js'

const API_KEY = 'api-key-of-32-bytes-for-the-tests'
const SCRIPT = '<img src=x onerror="document.title=1">'

describe('the admin page', () => {
  let browser: Browser
  let server: WebMQServer
  let client: WebMQClient
  let url: string
  let session: string
  const problems: string[] = []
  const foreignRequests: string[] = []

  beforeAll(async () => {
    server = createServer({ port: 0, adminPort: 0, apiKeys: [API_KEY], logLevel: 'silent' })
    const { url: endpoint } = await server.start()
    url = `http://127.0.0.1:${server.adminAddress?.port}`
    client = new WebMQClient({ url: endpoint, WebSocket, random: () => 0.01 })
    // It ends with the error of the disconnect.
    client.on('error', () => undefined)
    client.on('status', ({ connection }) => {
      session = connection?.session ?? session
    })
    await client.listen(`news.${SCRIPT.replaceAll(' ', '')}`, () => undefined).ready
    await presence<string>('room.1', { client }).enter(SCRIPT)
    browser = await startChromium()
  })

  afterAll(async () => {
    await browser?.close()
    await client?.close({ flushMs: 0 })
    await server?.stop({ drainMs: 0 })
  })

  async function openPage(at = url): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('request', (request) => {
      if (!request.url().startsWith(`${at}/`)) foreignRequests.push(request.url())
    })
    await page.goto(`${at}/admin`)
    return page
  }

  async function login(page: Page, key: string): Promise<void> {
    await page.locator('#login [name=key]').fill(key)
    await page.locator('#login button').click()
  }

  async function openedPage(at = url): Promise<Page> {
    const page = await openPage(at)
    await login(page, API_KEY)
    await page.locator('#main').waitFor()
    return page
  }

  const showView = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).click()

  async function submit(page: Page, section: string, fields: Readonly<Record<string, string>>): Promise<void> {
    const form = page.locator(`#${section} form`)
    for (const [name, value] of Object.entries(fields)) await form.locator(`[name=${name}]`).fill(value)
    await form.locator('[type=submit]').click()
  }

  it('says what it is, shows nothing without the key, and forgets a wrong one', async () => {
    const page = await openPage()
    await page.getByRole('heading', { name: 'The page for operators of this server' }).waitFor()
    await page.locator('#node', { hasText: 'webmq-server' }).waitFor()
    expect(await page.locator('#main').isVisible()).toBe(false)
    await expectAccessible(page)
    await login(page, 'a-wrong-key-of-thirty-two-bytes-!')
    await page.locator('#error', { hasText: 'E_UNAUTHENTICATED' }).waitFor()
    expect(await page.locator('#main').isVisible()).toBe(false)
    expect(await page.evaluate(() => [sessionStorage.length, localStorage.length, document.cookie])).toEqual([0, 0, ''])

    for (const path of ['/api/info', '/admin/tail?pattern=%23']) {
      for (const headers of [{}, { authorization: 'Bearer nonsense' }] as const) {
        expect((await fetch(url + path, { headers })).status, path).toBeGreaterThanOrEqual(401)
      }
    }
    expect((await fetch(`${url}/..%2fpackage.json`)).status).toBe(404)
    await page.close()
  })

  it('shows rates, nodes, connections, patterns, presence and options, and runs nothing that clients wrote', async () => {
    const page = await openedPage()
    await page.locator('#totals', { hasText: 'connections1' }).waitFor()
    expect(await page.locator('#welcome').isVisible()).toBe(false)
    await page.locator('#nodes td', { hasText: 'memory up' }).waitFor()
    await page.locator('#patterns td', { hasText: '<imgsrc=x' }).waitFor()
    await expectAccessible(page)

    await showView(page, 'Connections')
    expect(await page.locator('#overview').isVisible()).toBe(false)
    await page.locator('#connections td', { hasText: '<imgsrc=x' }).waitFor()
    await expectAccessible(page)

    await showView(page, 'Options')
    const options = page.locator('#config')
    await options.locator('tr', { hasText: 'apiKeys' }).getByText('[hidden]').waitFor()
    expect(await options.textContent()).not.toContain(API_KEY)
    await options.locator('[name=search]').fill('maxPayload')
    await expect.poll(() => options.locator('tbody tr').count()).toBe(1)
    await options.locator('[name=search]').fill('there is no such option')
    await options.locator('td', { hasText: 'No option matches.' }).waitFor()
    await expectAccessible(page)

    await showView(page, 'Messages')
    await submit(page, 'presence', { key: 'room.1' })
    await page.locator('#presence td', { hasText: 'onerror' }).waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(await page.title()).toBe('WebMQ · admin')
    await expectAccessible(page)

    await page.locator('#logout').click()
    expect(await page.locator('#main').isVisible()).toBe(false)
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
    await page.close()
  })

  it('plots load, messages, gaps and refusals over time, with scales', async () => {
    const page = await openedPage()
    const numberIn = async (id: string) => Number((await page.locator(`#${id}`).getAttribute('data-latest')) ?? '–')
    await expect.poll(() => numberIn('memory')).toBeGreaterThan(1)
    await expect.poll(() => numberIn('event-loop'), { timeout: 20_000 }).toBeGreaterThanOrEqual(0)
    await client.publish('news.plotted', 1)
    await expect.poll(() => numberIn('broker'), { timeout: 20_000, interval: 100 }).toBeGreaterThanOrEqual(0)
    const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
    const refuse = () =>
      fetch(`${url}/api/publish`, { method: 'POST', headers, body: JSON.stringify({ key: 'not a key', payload: 1 }) })
    const refused = async () => {
      await refuse()
      return numberIn('refused')
    }
    await expect.poll(refused, { timeout: 20_000 }).toBeGreaterThan(0)
    for (const id of ['received', 'sent', 'connections-open', 'cpu', 'memory', 'event-loop', 'broker', 'refused']) {
      expect(await page.locator(`#${id} path.line`).count(), id).toBeGreaterThan(0)
    }
    expect(await page.locator('#recoveries path.line').count()).toBe(2)
    const labels = await page.locator('#received text').allTextContents()
    const [zero, half = 0, top] = labels.map(Number)
    expect([zero, half > 0, top]).toEqual([0, true, 2 * half])
    expect(labels.slice(3).join()).toMatch(/^\d\d:\d\d:\d\d/)
    await page.locator('#load', { hasText: 'The page keeps 30 minutes' }).waitFor()
    await page.close()
  })

  it('publishes, follows a pattern and reads the history of a key', async () => {
    const page = await openedPage()
    await showView(page, 'Messages')
    await submit(page, 'tail', { pattern: 'tail.#' })
    await page.locator('#tail li', { hasText: 'following tail.#' }).waitFor()
    await submit(page, 'publish', { key: 'tail.1', payload: JSON.stringify({ text: SCRIPT }) })
    await page.locator('#publish output', { hasText: 'published, position' }).waitFor()
    await page.locator('#tail li', { hasText: 'tail.1' }).getByText('onerror').waitFor()
    await submit(page, 'history', { key: 'tail.1' })
    await page.locator('#history td', { hasText: 'onerror' }).waitFor()
    expect(await page.locator('img').count()).toBe(0)

    await submit(page, 'publish', { key: 'not a key', payload: '1' })
    await page.locator('#error', { hasText: 'E_KEY_INVALID' }).waitFor()
    await submit(page, 'tail', { pattern: 'no*pattern' })
    await page.locator('#error', { hasText: 'E_PATTERN_INVALID' }).waitFor()
    await page.close()
  })

  it('finds a connection and ends it', async () => {
    const page = await openedPage()
    await showView(page, 'Connections')
    const ended = new Promise<unknown>((resolve) => client.on('status', ({ code }) => code && resolve(code)))
    const search = async (by: string, value: string) => {
      await page.locator('#connections [name=by]').selectOption(by)
      await submit(page, 'connections', { value })
    }
    await search('user', 'nobody')
    await page.locator('#connections .none').waitFor()
    await search('session', session)
    await page.locator('#connections').getByRole('button', { name: 'Disconnect' }).click()
    expect(await ended).toBe(4503)
    await page.locator('#connections td', { hasText: 'ended' }).waitFor()
    await page.close()
  })

  it('lists the connections of all nodes, or of one, and names a node that does not answer', async () => {
    const places = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
    const broker = `mesh://${places.join()}`
    const flags = [
      '--broker',
      broker,
      '--mesh-listen',
      String(places[1]),
      '--api-key',
      API_KEY,
      '--max-payload',
      '1KiB',
    ]
    const other = await startServerProcess(0, flags)
    const mesh = { listen: String(places[0]) }
    const first = createServer({ port: 0, adminPort: 0, apiKeys: [API_KEY], logLevel: 'silent', broker, mesh })
    const guest = new WebMQClient({ url: `${other.url.replace('http', 'ws')}/ws`, WebSocket })
    onTestFinished(async () => {
      await guest.close({ flushMs: 0 })
      await first.stop({ drainMs: 0 })
      await other.kill('SIGKILL')
    })
    await first.start()
    await guest.connect()
    const page = await openedPage(`http://127.0.0.1:${first.adminAddress?.port}`)
    const table = page.locator('#connections table')
    const node = page.locator('#connections [name=node]')
    /** Asks again until it shows: on a busy machine a node may answer too late. */
    const shows = async (name: string, what: Locator) => {
      const look = async () => {
        await node.selectOption(name)
        await submit(page, 'connections', {})
        return await what.isVisible()
      }
      await expect.poll(look, { interval: 200 }).toBe(true)
    }
    await expect.poll(() => node.locator('option').count()).toBe(3)
    // It takes other payloads.
    await page.locator('#totals', { hasText: 'nodes with other options1' }).waitFor()
    await expect.poll(() => page.locator('#cpu path.line').count()).toBe(2)
    await expectAccessible(page)
    await showView(page, 'Connections')
    const [, own = '', far = ''] = await node.locator('option').allTextContents()
    await shows('all', table.locator('tr', { hasText: far }).getByText(String(guest.status.connection?.session)))
    await shows(own, table.locator('.none'))
    await shows(far, table.getByText(far))
    expect(await page.locator('#connections .missing').isVisible()).toBe(false)
    await other.kill('SIGKILL')
    await shows('all', page.locator('#connections .missing', { hasText: far }))
    await page.close()
  })

  it.each([390, 1400])('fits a screen %i px wide, and no word of a table is broken into letters', async (width) => {
    const page = await openedPage()
    await page.setViewportSize({ width, height: 844 })
    for (const view of ['Connections', 'Messages', 'Options', 'Overview']) {
      await showView(page, view)
      const overflowPx = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
      expect(overflowPx, view).toBeLessThanOrEqual(0)
      // In one go: the page makes its rows anew while it is looked at.
      const widths = await page.evaluate(() =>
        [...document.querySelectorAll('tbody td')]
          .filter((cell) => cell.checkVisibility())
          .map((cell) => cell.clientWidth),
      )
      if (width === 390) expect(Math.min(...widths, width), view).toBeGreaterThan(300)
    }
    await page.close()
  })

  it('is on no port for clients, and nowhere without a key', async () => {
    const port = server.address?.port
    expect((await fetch(`http://127.0.0.1:${port}/admin`)).status).toBe(404)
    const bare = createServer({ port: 0, adminPort: 0, logLevel: 'silent' })
    await bare.start()
    expect((await fetch(`http://127.0.0.1:${bare.adminAddress?.port}/admin`)).status).toBe(404)
    await bare.stop({ drainMs: 0 })
  })

  it('throws nothing and asks no other host', () => {
    expect(problems).toEqual([])
    expect(foreignRequests).toEqual([])
  })
})
