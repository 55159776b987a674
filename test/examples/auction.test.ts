import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'
import { useExample } from './harness.js'

const TIMEOUT_MS = 20_000

describe('the example auction', () => {
  const auction = useExample('auction')

  const says = (page: Page, id: string, text: string) =>
    page.locator(`#${id} output`, { hasText: text }).waitFor({ timeout: TIMEOUT_MS })
  const bidsOf = (page: Page, id: string) => page.locator(`#${id} .bids li:not(.pending)`)

  async function bid(page: Page, id: string, euros: string): Promise<void> {
    await page.locator(`#${id} input`).fill(euros)
    await page.locator(`#${id} button[type=submit]`).click()
  }

  async function post(path: string, body: object): Promise<number> {
    const headers = { 'content-type': 'application/json' }
    const url = `http://127.0.0.1:${auction.example.env.GATEWAY_PORT}${path}`
    return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status
  }

  async function open(endsInMs: number): Promise<string> {
    const id = `item-${randomUUID().slice(0, 8)}`
    const item = { id, endsInMs, startPrice: 1_000 }
    await expect.poll(() => post('/items', item).catch(() => 0), { timeout: TIMEOUT_MS }).toBe(201)
    return id
  }

  it('shows the bids of all, and who is outbid, bids too little or wins', async () => {
    const [ada, bob] = [await auction.openPage('?name=Ada'), await auction.openPage('?name=Bob')]
    const id = await open(60_000)
    await ada.locator(`#${id} .left`, { hasText: 's left' }).waitFor()
    await bid(ada, id, '12')
    await says(ada, id, 'Your bid is the highest')
    await bidsOf(bob, id).filter({ hasText: '12.00 € by Ada' }).waitFor()
    await bid(bob, id, '11.99')
    await says(bob, id, 'Too low: at least 12.01 €')
    await bid(bob, id, '13.50')
    await says(bob, id, 'Your bid is the highest')
    await says(ada, id, 'Bob has outbid you')
    for (const page of [ada, bob]) {
      await page.locator(`#${id} .price`, { hasText: '13.50 €' }).waitFor()
      expect(await bidsOf(page, id).count()).toBe(2)
    }

    const short = await open(1_000)
    expect(await post(`/items/${short}/bids`, { bidId: 'one', bidder: 'Ada', amount: 2_000 })).toBe(201)
    for (const page of [ada, bob]) await page.locator(`#${short} p`, { hasText: 'Closed' }).waitFor()
    await says(ada, short, 'You have won for 20.00 €')
    await says(bob, short, 'Ada has won for 20.00 €')
    expect(await bob.locator(`#${short} form`).count()).toBe(0)
    expect(await post(`/items/${short}/bids`, { bidId: 'two', bidder: 'Bob', amount: 9_000 })).toBe(410)
  })

  it('lets no page publish a bid', async () => {
    for (const port of [auction.example.env.PORT, auction.example.env.SECOND_PORT]) {
      const client = new WebMQClient({ url: `ws://127.0.0.1:${port}/ws`, WebSocket })
      client.on('error', () => undefined)
      onTestFinished(() => client.close())
      await client.listen('auction.*.bid', () => undefined).ready
      const forged = { type: 'bid', item: 'x', seq: 1, ts_us: 1, amount: 1, bidder: 'Eve', bidId: 'x' }
      for (const key of ['auction.x.bid', 'auction.items', 'auction.x']) {
        await expect(client.publish(key, forged)).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
      }
      await expect(client.listen('auction.#', () => undefined).ready).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    }
  })
})
