import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { freePort } from 'webmq-services'
import { WebSocket } from 'ws'
import { type EventsByItem, readRecord, reconcile, report } from '../../examples/auction/gateway/reconcile.js'
import { expectAccessible } from '../accessible.js'
import { BiddingWar, Watcher } from './bidding-war.js'
import { useExample } from './harness.js'

/** A connection to Redis; the library is the example's. */
interface Connection {
  del(...keys: string[]): Promise<unknown>
  eval(script: string, keyCount: number): Promise<unknown>
  hset(key: string, field: string, value: number): Promise<unknown>
  xadd(key: string, ...entry: string[]): Promise<unknown>
  disconnect(): void
}

const EXAMPLE = fileURLToPath(new URL('../../examples/auction/', import.meta.url))
const { Redis }: { readonly Redis: new (url: string) => Connection } = createRequire(EXAMPLE)('ioredis')

const TIMEOUT_MS = 60_000
const START_PRICE = 1_000
const BIDDER_COUNT = 6
const BIDS_BETWEEN_FAULTS = 15
const RETRIED_COUNT = 20
const OPEN_ALL = `for n = 1, 1000 do redis.call('ZADD', '{auction}:due', '+inf', 'none' .. n) end`
/** Fills the outbox, and takes the lease of the relay. */
const FALL_BEHIND = `
redis.call('DEL', '{auction}:outbox')
for _ = 1, 10000 do redis.call('XADD', '{auction}:outbox', '*', 'key', 'auction.none', 'id', 'none', 'payload', '{}') end
redis.call('SET', '{auction}:relay', 'another')
`

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
    const item = { id, endsInMs, startPrice: START_PRICE }
    await expect.poll(() => post('/items', item).catch(() => 0), { timeout: TIMEOUT_MS }).toBe(201)
    return id
  }

  it('shows the bids of all, and who is outbid, bids too little or wins', async () => {
    const [ada, bob] = [await auction.openPage('?name=Ada'), await auction.openPage('?name=Bob')]
    const id = await open(110_000)
    await ada.locator(`#${id} .left`, { hasText: /[01]:\d\d left/ }).waitFor()
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

    await expectAccessible(ada)

    const short = await open(4_000)
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

  it('refuses what it cannot understand or must bound, with a status and a reason', async () => {
    const id = await open(600_000)
    const url = `http://127.0.0.1:${auction.example.env.GATEWAY_PORT}`
    const ask = async (method: string, path: string, body?: string, type = 'application/json') => {
      const request = { method, headers: { 'content-type': type }, ...(body !== undefined && { body }) }
      const response = await fetch(`${url}${path}`, request)
      return `${response.status} ${((await response.json()) as { reason?: string }).reason ?? 'ok'}`
    }
    const bids = `/items/${id}/bids`
    const bid = (change: object) =>
      ask('POST', bids, JSON.stringify({ bidId: 'b', bidder: 'Ada', amount: 2_000, ...change }))
    const item = (change: object) =>
      ask('POST', '/items', JSON.stringify({ endsInMs: 9_000, startPrice: 1, ...change }))

    for (const bidId of ['', 'a b', 'x'.repeat(65), 7, null]) expect(await bid({ bidId })).toBe('400 invalid')
    for (const bidder of ['', 'x'.repeat(33), 'a\nb', '\ud800', ['Ada']])
      expect(await bid({ bidder })).toBe('400 invalid')
    for (const amount of [0, -1, 1.5, '2000', 1e12 + 1, null]) expect(await bid({ amount })).toBe('400 invalid')
    for (const bad of ['a.b', 'x'.repeat(33), '#', 5]) expect(await item({ id: bad })).toBe('400 invalid')
    for (const endsInMs of [0, 99, 31 * 24 * 3_600_000, 'soon']) expect(await item({ endsInMs })).toBe('400 invalid')
    for (const startPrice of [0, 1.5, undefined]) expect(await item({ startPrice })).toBe('400 invalid')
    expect(await item({ id })).toBe('409 exists')
    for (const [body, answer] of [
      ['{', '400 no-json'],
      ['[]', '400 no-object'],
      ['null', '400 no-object'],
      [`"${'x'.repeat(5_000)}"`, '413 too-large'],
    ] as const) {
      expect(await ask('POST', bids, body)).toBe(answer)
    }
    expect(await ask('POST', bids, '{}', 'text/plain')).toBe('415 content-type')
    expect(await ask('POST', '/items/none/bids', '{"bidId":"b","bidder":"Ada","amount":1}')).toBe('404 unknown-item')
    for (const path of ['/', '/items/', `/items/${id}/`, `${bids}/x`, '/constructor']) {
      expect(await ask('GET', path)).toBe('404 unknown-path')
    }
    for (const query of ['limit=101', 'limit=x', 'before=0']) {
      expect(await ask('GET', `/items/${id}/events?${query}`)).toBe('400 invalid')
    }
    expect(await ask('DELETE', `/items/${id}`)).toBe('405 method')

    expect(await bid({ bidder: 'Zoë "%s" \\', amount: 1_000 })).toBe('201 ok')
    expect(await bid({ bidder: 'Zoë "%s" \\', amount: 1_000 })).toBe('200 ok')
    expect(await bid({ bidder: 'Zoë "%s" \\', amount: 3_000 })).toBe('422 bid-id-used')
    // Ids of one bidder are none of another's.
    expect(await bid({ amount: 1_000 })).toBe('409 too-low')
    expect(await bid({ amount: 1_001 })).toBe('201 ok')
    // As if an item had all the bids that it may have, and as if all items were open that may be.
    const redis = new Redis(auction.example.env.AUCTION_REDIS_URL ?? '')
    onTestFinished(() => redis.disconnect())
    await redis.hset(`{auction}:item:${id}`, 'seq', 100_000)
    expect(await bid({ bidId: 'c', amount: 1_002 })).toBe('429 full')
    await redis.eval(OPEN_ALL, 0)
    expect(await item({})).toBe('429 full')
    await redis.eval("return redis.call('ZREMRANGEBYSCORE', '{auction}:due', '+inf', '+inf')", 0)
    expect(await item({})).toBe('201 ok')
    const [first] = (await fetch(`${url}/items/${id}/events?limit=2`).then((response) => response.json())) as object[]
    expect(first).toMatchObject({ seq: 1, bidder: 'Zoë "%s" \\', amount: 1_000 })
  })

  it('goes on after a crash: closes what is due, and publishes nothing again whose message id is forgotten', async () => {
    const { env, programs } = auction.example
    const gateway = programs.find(({ name }) => name === 'gateway')
    const watcher = new Watcher([env.PORT])
    onTestFinished(() => watcher.client.close())
    await watcher.ready
    const id = await open(600_000)
    const bid = (amount: number) => post(`/items/${id}/bids`, { bidId: `b${amount}`, bidder: 'Ada', amount })
    for (const amount of [1_000, 1_001]) expect(await bid(amount)).toBe(201)
    await expect.poll(() => watcher.count(id), { timeout: TIMEOUT_MS }).toBe(2)

    // It ends while no gateway is there.
    const short = await open(500)
    await gateway?.stop('SIGKILL')
    // Another gateway seems to relay, and is behind.
    const redis = new Redis(env.AUCTION_REDIS_URL ?? '')
    onTestFinished(() => redis.disconnect())
    await redis.eval(FALL_BEHIND, 0)
    await gateway?.start()
    await expect.poll(() => bid(1_002).catch(() => 0), { timeout: TIMEOUT_MS }).toBe(503)

    // As if it had been killed after it had published the first bid, an hour ago. The other id stands for a forgotten one.
    await redis.del('{auction}:outbox')
    const fields = ['key', `auction.${id}.bid`, 'id', 'forgotten', 'payload', JSON.stringify(watcher.seen.get(id)?.[0])]
    await redis.xadd('{auction}:outbox', `${Date.now() - 3_600_000}-0`, ...fields)
    await redis.del('{auction}:relay')
    await expect.poll(() => bid(1_002).catch(() => 0), { timeout: TIMEOUT_MS }).toBe(201)
    await expect.poll(() => watcher.seen.get(id)?.at(-1)?.seq, { timeout: TIMEOUT_MS }).toBe(3)
    expect(watcher.seen.get(id)?.map(({ seq }) => seq)).toEqual([1, 2, 3])
    const isClosed = async () => {
      const response = await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/items/${short}`)
      return ((await response.json()) as { isClosed: boolean }).isClosed
    }
    await expect.poll(isClosed, { timeout: TIMEOUT_MS }).toBe(true)
  })

  it('loses, doubles and disorders no accepted bid while each process is killed in turn', async () => {
    const { env, services, programs } = auction.example
    const items = [await open(600_000), await open(600_000)]
    const watchers = [new Watcher([env.PORT, env.SECOND_PORT]), new Watcher([env.SECOND_PORT, env.PORT])]
    onTestFinished(async () => void (await Promise.all(watchers.map(({ client }) => client.close()))))
    await Promise.all(watchers.map(({ ready }) => ready))
    const war = new BiddingWar([env.GATEWAY_PORT ?? '', await startSecondGateway(env)], items, START_PRICE)
    const more = async () => {
      const before = war.accepted.length
      await expect
        .poll(() => war.accepted.length, { timeout: TIMEOUT_MS })
        .toBeGreaterThan(before + BIDS_BETWEEN_FAULTS)
    }
    war.begin(BIDDER_COUNT)
    await more()
    let closing = ''
    for (const name of ['gateway', 'second-server']) {
      const program = programs.find((one) => one.name === name)
      // It ends while nobody is there to close it.
      if (name === 'gateway') closing = await open(200)
      await program?.stop('SIGKILL')
      await program?.start()
      await more()
    }
    for (const service of Object.values(services)) {
      await service.kill()
      await service.restart()
      await more()
    }
    await war.end()

    const record = await readRecord(env.AUCTION_REDIS_URL ?? '', 'auction', [...items, closing])
    for (const watcher of watchers) {
      for (const [item, events] of record) {
        await expect.poll(() => watcher.count(item), { timeout: TIMEOUT_MS }).toBeGreaterThanOrEqual(events.length)
      }
    }
    const seen = new Map(watchers.map((watcher, index) => [`client ${index}`, only(watcher.seen, record)]))
    expect(report(reconcile(record, seen))).toBe('')
    expect(record.get(closing)?.at(-1)).toMatchObject({ type: 'closed' })
    const bids = items.flatMap((item) => record.get(item) ?? [])
    expect(bids.length).toBe(war.accepted.length)
    // A retry gets the first answer, however often.
    for (const { item, bid, answer } of war.accepted.slice(-RETRIED_COUNT)) {
      expect(await war.post(`/items/${item}/bids`, bid)).toEqual({ status: 200, answer })
    }
    process.stdout.write(
      `auction: ${bids.length} bids, ${war.refusedCount} too low, ${war.retryCount} retries, ` +
        `${watchers.reduce((sum, { gapCount }) => sum + gapCount, 0)} gaps\n`,
    )
  })
})

/** Another gateway of the same auction; it ends with the test. Resolves with its port. */
async function startSecondGateway(env: Readonly<Record<string, string>>): Promise<string> {
  const port = String(await freePort())
  const file = `${EXAMPLE}dist/programs/gateway.js`
  const child = spawn(process.execPath, [file], {
    cwd: EXAMPLE,
    env: { ...process.env, ...env, GATEWAY_PORT: port },
    stdio: 'ignore',
  })
  onTestFinished(async () => {
    const ended = once(child, 'exit')
    child.kill()
    await ended
  })
  const health = () => fetch(`http://127.0.0.1:${port}/health`).then(({ status }) => status)
  await expect.poll(() => health().catch(() => 0), { timeout: TIMEOUT_MS }).toBe(200)
  return port
}

/** What a client has got for the items of the record; other tests have others. */
function only(seen: EventsByItem, record: EventsByItem): EventsByItem {
  return new Map([...seen].filter(([item]) => record.has(item)))
}
