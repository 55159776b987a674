import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { state } from 'webmq-client/parts'
import { WebSocket } from 'ws'
import { expectAccessible } from '../accessible.js'
import { useExample } from './harness.js'

// A test is no bench: two cores run many tests at once. packages/bench/browser/chromium.mjs measures.
process.env.UPDATES_PER_SECOND = '1000'
afterAll(() => {
  delete process.env.UPDATES_PER_SECOND
})

const KEY_COUNT = 300
/** Measured once all prices are there: half a second. */
const FRAME_COUNT = 30
/** A page on a busy machine first renders what waits in the sockets. */
const CATCH_UP_MS = 60_000

describe('the example dashboard', () => {
  const dashboard = useExample('dashboard')

  const shown = (page: Page): Promise<Record<string, number>> =>
    page.evaluate(() =>
      Object.fromEntries(
        [...document.querySelectorAll<HTMLElement>('.price')].map((box) => [box.dataset.key, Number(box.textContent)]),
      ),
    )

  const frameTimes = (page: Page): Promise<number[]> =>
    page.evaluate(() => (globalThis as unknown as { frameTimes: number[] }).frameTimes)

  it('renders what changes, and ends at the last value of every key', async () => {
    const page = await dashboard.openPage()
    await page
      .locator('.price')
      .nth(KEY_COUNT - 1)
      .waitFor()
    const { length: before } = await frameTimes(page)
    await page.waitForFunction(
      (count) => (globalThis as unknown as { frameTimes: number[] }).frameTimes.length > count,
      before + FRAME_COUNT,
    )
    const times = (await frameTimes(page)).slice(before).toSorted((a, b) => a - b)
    const percentile = (share: number) => times[Math.floor(share * (times.length - 1))]?.toFixed(1)
    process.stdout.write(
      `dashboard: ${times.length} frames, ${percentile(0.5)} ms (p50), ${percentile(0.95)} ms (p95)\n`,
    )

    const client = new WebMQClient({ url: `${dashboard.example.url.replace('http', 'ws')}ws`, WebSocket })
    onTestFinished(() => client.close())
    await client.publish('feed.running', false)
    await page.locator('#pause', { hasText: 'Run' }).waitFor({ timeout: CATCH_UP_MS })
    const prices = state('prices.*', { client })
    await prices.ready
    expect(prices.size).toBe(KEY_COUNT)
    await vi.waitFor(async () => expect(await shown(page)).toEqual(Object.fromEntries(prices.entries())), CATCH_UP_MS)
    await expectAccessible(page)
  })
})
