import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  type HistoryOptions,
  type HistoryResult,
  history,
  iterate,
  type LoadRequest,
  loaded,
  type PositionStore,
  savedPositions,
} from 'webmq-client/parts'
import { startClient, startServer } from './live.js'

const WAIT = { timeout: 20_000, interval: 20 }

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** What `sessionStorage` is, without a page. */
function memoryStore(): PositionStore {
  const items = new Map<string, string>()
  return {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
  }
}

describe('history and resume, client and server', () => {
  it('replays thousands of missed messages in pages, while more are published, and is cut off in between', async () => {
    const { server, url } = await startServer()
    const { client, cut, gaps } = startClient(url)
    const handled: unknown[] = []
    const subscription = client.listen('a.#', (payload) => {
      handled.push(payload)
      if (payload === 3_333) void cut()
    })
    await subscription.ready
    await cut()
    // More than a page, and than what may wait for a connection at once.
    for (let n = 1; n <= 8_000; n++) void server.publish('a.missed', n)
    let n = 8_000
    const timer = setInterval(() => {
      for (let count = 0; count < 50 && n < 12_000; count++) void server.publish('a.live', ++n)
    }, 5)
    onTestFinished(() => clearInterval(timer))
    await vi.waitFor(() => expect(handled).toHaveLength(12_000), WAIT)
    expect(handled).toEqual(numbers(1, 12_000))
    expect(gaps).toEqual([])
    expect(await subscription.ready).toMatchObject({ recovered: true })
  })

  it('is paced by a loop that reads slowly: nothing overflows', async () => {
    const { server, url } = await startServer()
    for (let n = 1; n <= 6_000; n++) void server.publish('a', n)
    const { client } = startClient(url)
    const payloads: unknown[] = []
    for await (const { payload } of iterate('a', { client, last: 6_000, bufferMaxMessages: 1_500 })) {
      payloads.push(payload)
      if (payloads.length % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
      if (payload === 6_000) break
    }
    expect(payloads).toEqual(numbers(1, 6_000))
  })

  it('loads what there is and then what comes, without missing or doubling anything in between', async () => {
    const { server, url } = await startServer()
    const { client, cut } = startClient(url)
    // The app's database: how much was published so far, and up to where in the log.
    const state = { count: 0, position: undefined as string | undefined }
    const publish = async () => {
      const { position } = await server.publish('counter', state.count + 1)
      state.count++
      state.position = position
    }
    await publish()
    let seen: number[] = []
    const causes: string[] = []
    const load = async ({ cause }: LoadRequest) => {
      causes.push(cause)
      const { count, position } = state
      // The answer is on its way while more is published.
      await new Promise((resolve) => setTimeout(resolve, 20))
      seen = numbers(1, count)
      return position
    }
    const timer = setInterval(() => void publish(), 1)
    onTestFinished(() => clearInterval(timer))
    const subscription = client.listen(
      'counter',
      loaded((payload) => seen.push(payload as number), load),
    )
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(100), WAIT)
    await cut()
    await subscription.ready
    const { length } = seen
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(length + 50), WAIT)
    clearInterval(timer)
    await vi.waitFor(() => expect(seen).toEqual(numbers(1, state.count)), WAIT)
    // Nothing was missed by the reconnect, so nothing was loaded again.
    expect(causes).toEqual(['initial'])
  })

  it('reads the history of a key: newest, page by page, and within a time', async () => {
    const { server, url } = await startServer()
    for (let n = 1; n <= 250; n++) void server.publish('a', n)
    void server.publish('b', 'other')
    const { client } = startClient(url)
    const payloadsOf = async (options?: HistoryOptions) =>
      (await history('a', { client, ...options })).messages.map(({ payload }) => payload)
    expect(await payloadsOf()).toEqual(numbers(151, 250))
    expect(await payloadsOf({ limit: 3, reverse: true })).toEqual([250, 249, 248])
    expect(await payloadsOf({ rewind: '1h', limit: 5 })).toEqual(numbers(1, 5))
    expect(await payloadsOf({ rewind: 0 })).toEqual([])
    const pages: unknown[] = []
    let since = (await history('a', { client, rewind: '1h', limit: 50 })).position
    for (let more = true; more; ) {
      const page: HistoryResult<unknown> = await history('a', { client, since, limit: 90 })
      pages.push(...page.messages.map(({ payload }) => payload))
      ;({ position: since, more } = page)
    }
    expect(pages).toEqual(numbers(51, 250))
    // From where the reading ended, a listen goes on without a seam.
    const handled: unknown[] = []
    await client.listen('a', (payload) => handled.push(payload), { since }).ready
    await server.publish('a', 251)
    await vi.waitFor(() => expect(handled).toEqual([251]), WAIT)
  })

  it('goes on after a reload of the page, and tells a gap when the server has begun anew', async () => {
    const { server, url } = await startServer()
    const store = memoryStore()
    const before = startClient(url, { resume: savedPositions(store) }).client
    const handled: unknown[] = []
    await before.listen('a', (payload) => handled.push(payload)).ready
    await server.publish('a', 1)
    await vi.waitFor(() => expect(handled).toEqual([1]), WAIT)
    await before.close()
    await server.publish('a', 2)
    const after = startClient(url, { resume: savedPositions(store) })
    const { ready } = after.client.listen('a', (payload) => handled.push(payload))
    expect(await ready).toMatchObject({ recovered: true, replayed: 1 })
    await vi.waitFor(() => expect(handled).toEqual([1, 2]), WAIT)
    await after.client.close()

    const other = await startServer()
    const elsewhere = startClient(other.url, {
      resume: savedPositions({ ...store, getItem: () => store.getItem(`webmq:${url}`) }),
    })
    expect(await elsewhere.client.listen('a', () => undefined).ready).toMatchObject({ gap: 'epoch-changed' })
    expect(elsewhere.gaps).toHaveLength(1)
  })

  it('finds no gap for a quiet listener, though the log has lost everything since its last message', async () => {
    const { server, url } = await startServer({ historyMaxMessages: 100, pingIntervalMs: 1_000 })
    const { client, cut, gaps, sockets } = startClient(url)
    const pongs: unknown[] = []
    const subscription = client.listen('quiet', () => undefined)
    const { position } = await subscription.ready
    sockets[0]?.on('message', (data) => `${data}`.startsWith('pong') && pongs.push(`${data}`))
    for (let n = 1; n <= 500; n++) void server.publish('busy', n)
    // The first may have been on its way before.
    await vi.waitFor(() => expect(pongs.length).toBeGreaterThan(1), WAIT)
    await cut()
    await server.publish('quiet', 1)
    const result = await subscription.ready
    expect(result).toMatchObject({ recovered: true, replayed: 1 })
    expect(result.position).not.toBe(position)
    expect(gaps).toEqual([])
  })
})
