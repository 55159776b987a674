import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { PublishResult, WebMQClient } from 'webmq-client'
import type { Outbox } from 'webmq-client/outbox'
import type { SharedTabs } from 'webmq-client/tabs'
import { createServer, type Hooks } from 'webmq-server'
import { startChromium } from '../chromium.js'
import { type PageModules, startSite } from './site.js'

/** What the pages of these tests have. */
declare const webmq: PageModules
declare let client: WebMQClient
declare let tabs: SharedTabs
declare let box: Outbox
declare let seen: unknown[]
declare let frames: number[]
declare let values: Record<string, unknown>
declare let counts: { handled: number; frames: number }

const WAIT = { timeout: 20_000, interval: 20 }

let browser: Browser
let site: Awaited<ReturnType<typeof startSite>>

beforeAll(async () => {
  const [started, launched] = await Promise.all([startSite(), startChromium()])
  site = started
  browser = launched
})

afterAll(async () => {
  await browser?.close()
  await site?.stop()
})

async function startServer(port = 0, hooks?: Hooks) {
  const options = { logLevel: 'silent', history: ['#=10000,1h'], closeTimeoutMs: 500 } as const
  const server = createServer({ port, ...options, ...(hooks && { hooks }) })
  const address = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  return { server, ...address }
}

async function startContext(): Promise<BrowserContext> {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  return context
}

async function openPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  await page.goto(site.url)
  await page.waitForFunction(() => 'webmq' in globalThis)
  return page
}

/** A tab that listens to `t.#` and notes what it gets. A leader that is silent for so long is replaced. */
async function openTab(context: BrowserContext, url: string, worker?: string, silentAfterMs = 10_000): Promise<Page> {
  const page = await openPage(context)
  await page.evaluate(
    async ([url, worker, silentAfterMs]) => {
      const makeWorker = () => new SharedWorker(`${worker}`, { type: 'module' })
      const shared = webmq.sharedTabs({ silentAfterMs, ...(worker !== undefined && { worker: makeWorker }) })
      const seen: unknown[] = []
      const client = webmq.setup({ url, WebSocket: shared })
      Object.assign(globalThis, { tabs: shared, client, seen })
      await client.listen('t.#', (payload) => seen.push(payload)).ready
    },
    [url, worker, silentAfterMs] as const,
  )
  return page
}

/** Publishes numbers until it is stopped; returns how many. */
function startTraffic(server: ReturnType<typeof createServer>) {
  let isOn = true
  const numbers = (async () => {
    let count = 0
    for (; isOn; count++) {
      await server.publish('t.a', count)
      await sleep(1)
    }
    return Array.from({ length: count }, (_, number) => number)
  })()
  // A test that has failed stops its server.
  numbers.catch(() => undefined)
  return async () => {
    isOn = false
    return numbers
  }
}

const seenBy = (page: Page) => page.evaluate(() => seen)
const modeOf = (page: Page) => page.evaluate(() => tabs.status.mode)
const hasSeen = (page: Page, count: number) =>
  page.waitForFunction((count) => seen.length >= count, count, { timeout: 20_000, polling: 20 })

describe('two tabs with one connection', () => {
  it.each([
    ['leader', undefined],
    ['worker', '/worker.js'],
  ])('share it (%s)', async (mode, worker) => {
    const { server, url } = await startServer()
    const context = await startContext()
    const pages = [await openTab(context, url, worker), await openTab(context, url, worker)]
    expect(server.stats().connectionCount).toBe(1)
    expect(await Promise.all(pages.map(modeOf))).toEqual(worker ? [mode, mode] : ['leader', 'follower'])
    await pages[1]?.evaluate(() => client.publish('t.a', 'from a tab'))
    for (const page of pages) {
      await hasSeen(page, 1)
      expect(await seenBy(page)).toEqual(['from a tab'])
    }
    await Promise.all(pages.map((page) => page.close()))
    await vi.waitFor(() => expect(server.stats().connectionCount).toBe(0), WAIT)
  })

  it('have a connection each where the worker cannot be loaded, and none where there are no locks', async () => {
    const { server, url } = await startServer()
    const context = await startContext()
    const first = await openTab(context, url, '/no-worker.js')
    expect(await first.evaluate(() => tabs.status)).toEqual({
      mode: 'leader',
      reason: 'the worker could not be loaded',
    })
    await context.addInitScript(() => Object.defineProperty(navigator, 'locks', { value: undefined }))
    const second = await openTab(context, url)
    expect(await second.evaluate(() => tabs.status)).toEqual({ mode: 'alone', reason: 'the page has no Web Locks' })
    expect(server.stats().connectionCount).toBe(2)
  })

  it.each(['killed', 'stopped', 'frozen'] as const)(
    'lose nothing and get nothing twice when the leader is %s',
    async (end) => {
      const { server, url } = await startServer()
      const context = await startContext()
      const open = () => openTab(context, url, undefined, 500)
      const leader = await open()
      const publisher = await open()
      const others = [publisher, await open()]
      const stop = startTraffic(server)
      for (const page of others) await hasSeen(page, 20)
      // In flight while the leader goes.
      const published = publisher.evaluate(() => Promise.all([1, 2, 3].map((n) => client.publish('u.a', n))))
      const devtools = await context.newCDPSession(leader)
      if (end === 'killed') void devtools.send('Page.crash').catch(() => undefined)
      // Chromium sends this event before it freezes a hidden page. `stopped` is a page that had no time for it.
      else if (end === 'frozen') await leader.evaluate(() => document.dispatchEvent(new Event('freeze')))
      else {
        await devtools.send('Debugger.enable')
        await devtools.send('Debugger.pause')
      }
      await expect
        .poll(async () => (await Promise.all(others.map(modeOf))).toSorted(), WAIT)
        .toEqual(['follower', 'leader'])
      if (end === 'stopped') await devtools.send('Debugger.resume')
      const numbers = await stop()
      const listeners = end === 'frozen' || end === 'stopped' ? [leader, ...others] : others
      for (const page of listeners) {
        await hasSeen(page, numbers.length)
        expect(await seenBy(page)).toEqual(numbers)
      }
      expect(await published).toHaveLength(3)
      expect(await publisher.evaluate(() => webmq.history('u.a').then(({ messages }) => messages.length))).toBe(3)
      await vi.waitFor(() => expect(server.stats().connectionCount).toBe(1), WAIT)
    },
  )
})

describe('an outbox', () => {
  /** A page with an outbox. */
  async function openBox(context: BrowserContext, url: string): Promise<Page> {
    const page = await openPage(context)
    await page.evaluate((url) => {
      const client = webmq.setup({ url })
      const box = webmq.outbox({ client })
      const seen: PublishResult[] = []
      box.on('sent', ({ result }) => seen.push(result))
      Object.assign(globalThis, { client, box, seen })
    }, url)
    return page
  }

  it('sends after a reload what was written while the server was down, once', async () => {
    const { server, url, port } = await startServer()
    const context = await startContext()
    const page = await openBox(context, url)
    await page.evaluate(() => client.connect())
    await server.stop({ drainMs: 0 })
    await page.evaluate(async () => {
      for (const n of [1, 2, 3]) await box.publish('u.a', n)
    })
    await page.close()
    const { server: next } = await startServer(port)
    const got: unknown[] = []
    const subscription = next.listen('u.#', (payload) => got.push(payload))
    onTestFinished(() => subscription.close())
    // Both tabs have the outbox; one of them sends.
    const pages = [await openBox(context, url), await openBox(context, url)]
    await expect.poll(() => got, WAIT).toEqual([1, 2, 3])
    for (const one of pages) {
      await expect.poll(() => one.evaluate(() => box.waitingCount), WAIT).toBe(0)
    }
    expect(got).toEqual([1, 2, 3])
  })

  it('refuses more than fits, keeps bytes, and has one copy of an id', async () => {
    const { server, url } = await startServer()
    await server.stop({ drainMs: 0 })
    const context = await startContext()
    const page = await openPage(context)
    const codes = await page.evaluate(async (url) => {
      const box = webmq.outbox({ client: webmq.setup({ url }), maxMessages: 2, maxBytes: 10, name: 'small' })
      const tries = [
        ['a', new Uint8Array(8), 'x'],
        ['a', new Uint8Array(8), 'x'],
        ['a', new Uint8Array(3), 'y'],
        ['a', 1, 'y'],
        ['a', 2, 'z'],
      ] as const
      const codes: string[] = []
      for (const [key, payload, id] of tries) {
        await box.publish(key, payload, { id }).then(
          () => codes.push('stored'),
          (error: { code: string; message: string }) => codes.push(error.message),
        )
      }
      return codes
    }, url)
    expect(codes).toEqual([
      'stored',
      'stored',
      expect.stringContaining('maxBytes 10'),
      'stored',
      expect.stringContaining('maxMessages 2'),
    ])
  })
})

describe('latest', () => {
  it('ends at the last value of all keys with 10,000 updates per second', async () => {
    const { server, url } = await startServer()
    const page = await openPage(await startContext())
    await page.evaluate(async (url) => {
      const client = webmq.setup({ url })
      const frames: number[] = []
      const values: Record<string, unknown> = {}
      const counts = { handled: 0, frames: 0 }
      Object.assign(globalThis, { client, frames, values, counts })
      const note = (time: number) => {
        frames.push(time)
        requestAnimationFrame(note)
      }
      requestAnimationFrame(note)
      const handler = (messages: readonly { key: string; payload: unknown }[]) => {
        counts.frames++
        counts.handled += messages.length
        for (const { key, payload } of messages) values[key] = payload
      }
      await client.listen('p.*', webmq.latest(handler, { every: 'frame', batch: true })).ready
    }, url)
    const keys = Array.from({ length: 200 }, (_, n) => `p.${n}`)
    const startMs = performance.now()
    const ROUNDS = 25
    for (let round = 1; round <= ROUNDS; round++) {
      await server.publishBatch(keys.map((key) => ({ key, payload: round })))
      await sleep(Math.max(0, startMs + round * 20 - performance.now()))
    }
    const updates = ROUNDS * keys.length
    const perSecond = Math.round((updates / (performance.now() - startMs)) * 1_000)
    await page.waitForFunction(
      ([count, last]) => Object.values(values).filter((value) => value === last).length === count,
      [keys.length, ROUNDS] as const,
      { timeout: 20_000 },
    )
    const { times, handled, batches } = await page.evaluate(() => ({
      times: frames.slice(1).map((time, index) => time - (frames[index] ?? 0)),
      handled: counts.handled,
      batches: counts.frames,
    }))
    const p95 = times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)]
    console.log(
      `latest: ${perSecond} updates/s, ${handled} of ${updates} handled in ${batches} frames, frame p95 ${p95?.toFixed(1)} ms`,
    )
    // Where no frame comes for a quarter of a second, messages are handed over without one.
    const withoutFrame = times.reduce((sum, time) => sum + Math.floor(time / 250), 0)
    expect(batches).toBeLessThanOrEqual(times.length + 2 + withoutFrame)
    expect(handled).toBeLessThanOrEqual(updates)
  })
})

describe('a page', () => {
  it('that comes back from the back/forward cache or was offline has missed nothing', async () => {
    const { server, url } = await startServer()
    const context = await startContext()
    const page = await openTab(context, url)
    await server.publish('t.a', 0)
    await hasSeen(page, 1)
    // Chromium without a window has no such cache: its events alone, to a page that has lost its connection.
    await page.evaluate(() => {
      dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))
    })
    // Not until it has no connection: this page runs on, unlike one in the cache, and may have the next one.
    const endedCount = () => Object.values(server.stats().closeCounts).reduce((sum, count) => sum + count, 0)
    await vi.waitFor(() => expect(endedCount()).toBeGreaterThan(0), WAIT)
    await server.publish('t.a', 1)
    await page.evaluate(() => {
      dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
    })
    await hasSeen(page, 2)
    await context.setOffline(true)
    await server.publish('t.a', 2)
    await context.setOffline(false)
    await hasSeen(page, 3)
    expect(await seenBy(page)).toEqual([0, 1, 2])
  })

  it('publishes once when the server dies before it answers', async () => {
    let ended: Promise<void> | undefined
    const dying = await startServer(0, {
      // Its first publish is its end: nobody gets an answer.
      publish: () => {
        ended ??= dying.server.stop({ drainMs: 0 })
        return new Promise(() => undefined)
      },
    })
    const page = await openPage(await startContext())
    const published = page.evaluate((url) => {
      const client = webmq.setup({ url })
      return Promise.all([1, 2, 3].map((n) => client.publish('u.a', n)))
    }, dying.url)
    await vi.waitFor(() => expect(ended).toBeDefined(), WAIT)
    await ended
    const { server } = await startServer(dying.port)
    expect(await published).toHaveLength(3)
    const { messages } = await server.history('u.a')
    expect(messages.map(({ payload }) => payload)).toEqual([1, 2, 3])
  })

  it('gives its listens to a second setup', async () => {
    const { server, url } = await startServer()
    const page = await openPage(await startContext())
    await page.evaluate(async (url) => {
      Object.assign(globalThis, { seen: [] })
      const first = webmq.setup({ url })
      await first.listen('t.#', (payload) => seen.push(payload)).ready
    }, url)
    const stop = startTraffic(server)
    await hasSeen(page, 5)
    await page.evaluate(async (url) => {
      await webmq.setup({ url }).connect()
    }, url)
    const numbers = await stop()
    await hasSeen(page, numbers.length)
    expect(await seenBy(page)).toEqual(numbers)
    await vi.waitFor(() => expect(server.stats().connectionCount).toBe(1), WAIT)
  })
})
