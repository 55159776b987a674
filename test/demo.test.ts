import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from 'webmq-services'
import { expectAccessible } from './accessible.js'
import { startChromium } from './chromium.js'
import { type ServerProcess, startServerProcess } from './server-process.js'

describe('the demo page', () => {
  let browser: Browser
  let server: ServerProcess
  let port: number
  const problems: string[] = []
  const foreignRequests: string[] = []

  beforeAll(async () => {
    port = await freePort()
    server = await startServerProcess(port, ['--demo'])
    browser = await startChromium()
  })

  afterAll(async () => {
    await browser?.close()
    await server?.kill('SIGKILL')
  })

  async function openTab(query = '', viewport = { width: 1400, height: 900 }): Promise<Page> {
    const page = await browser.newPage({ viewport })
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('request', (request) => {
      if (new URL(request.url()).hostname !== '127.0.0.1') foreignRequests.push(request.url())
    })
    await page.goto(`${server.url}/${query}`)
    for (const side of [0, 1]) await stateOf(page, side, 'connected')
    return page
  }

  const pane = (page: Page, side: number) => page.locator('.pane').nth(side)

  async function stateOf(page: Page, side: number, state: string): Promise<void> {
    await pane(page, side).locator(`.state[data-state="${state}"]`).waitFor({ timeout: 20_000 })
  }

  async function listening(page: Page, pattern: string): Promise<void> {
    for (const side of [0, 1])
      await pane(page, side).locator('.patterns li[data-state="active"]', { hasText: pattern }).waitFor()
  }

  async function publish(page: Page, side: number, key: string, payload: string): Promise<void> {
    const form = pane(page, side).locator('.publish')
    await form.locator('[name=key]').fill(key)
    await form.locator('[name=payload]').fill(payload)
    await form.locator('button').click()
  }

  const received = (page: Page, side: number, text: string) =>
    pane(page, side).locator('.feed li', { hasText: text }).first().waitFor()

  it('delivers what one tab publishes to the other by #, * and exact patterns', async () => {
    const sender = await openTab('?pattern=nobody.sends.here')
    for (const pattern of ['%23', 'chat.*.message', 'chat.42.message']) {
      const receiver = await openTab(`?pattern=${pattern}`)
      await listening(receiver, decodeURIComponent(pattern))
      const text = `hello by ${decodeURIComponent(pattern)}`
      await publish(sender, 0, 'chat.42.message', JSON.stringify({ text }))
      await received(receiver, 0, text)
      await received(receiver, 1, text)
      if (pattern === '%23') await expectAccessible(receiver)
      await receiver.close()
    }
    expect(await pane(sender, 0).locator('.feed li').count()).toBe(0)
    await sender.close()
  })

  it('shows a clear error for a pattern that is not valid, and stops listening when asked', async () => {
    const page = await openTab('?pattern=news.%23')
    const form = pane(page, 0).locator('.listen')
    await form.locator('[name=pattern]').fill('no*pattern')
    await form.locator('button').click()
    await pane(page, 0).locator('.error', { hasText: 'E_PATTERN_INVALID' }).waitFor()

    await listening(page, 'news.#')
    await pane(page, 0).locator('.patterns button').first().click()
    await publish(page, 1, 'news.today', '"only the right pane"')
    await received(page, 1, 'only the right pane')
    expect(await pane(page, 0).locator('.feed li').count()).toBe(0)
    await page.close()
  })

  it('goes on by itself in both tabs after the server was killed and restarted', async () => {
    const tabs = [await openTab('?pattern=chat.%23'), await openTab('?pattern=chat.%23')] as const
    for (const tab of tabs) await listening(tab, 'chat.#')
    await server.kill('SIGKILL')
    for (const tab of tabs) await stateOf(tab, 0, 'reconnecting')
    server = await startServerProcess(port, ['--demo'])
    for (const tab of tabs) for (const side of [0, 1]) await stateOf(tab, side, 'connected')

    await publish(tabs[0], 0, 'chat.1', '"after the restart"')
    for (const tab of tabs) await received(tab, 0, 'after the restart')
    await publish(tabs[1], 1, 'chat.2', '"and back"')
    for (const tab of tabs) await received(tab, 1, 'and back')
    for (const tab of tabs) await tab.close()
  })

  it.each([390, 1400])('fits a screen %i px wide', async (width) => {
    const page = await openTab('', { width, height: 844 })
    const overflowPx = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    expect(overflowPx).toBeLessThanOrEqual(0)
    await page.close()
  })

  it('throws nothing and asks no other host', () => {
    expect(problems).toEqual([])
    expect(foreignRequests).toEqual([])
  })
})
