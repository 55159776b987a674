import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer } from '../src/dev/testing/index.js'
import { type LoadRequest, loaded } from '../src/parts/load/index.js'
import { type PositionStore, savedPositions } from '../src/parts/resume/index.js'
import { seededRandom } from './seeded-random.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const numbers = (from: number, to: number) => Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n)

it.each([1, 2, 3, 4])('loads and applies every message once, whatever fails: seed %i', async (seed) => {
  const random = seededRandom(seed)
  const server = createTestServer({ historyMaxMessages: 40, replayPageMessages: 5 })
  const { client } = createTestClient({ server, random })
  const { client: publisher } = createTestClient({ server, random, ackTimeoutMs: 86_400_000 })
  client.on('error', () => undefined)
  // The app's database, and its position in the log.
  const database = { count: 0, position: undefined as string | undefined }
  let seen: number[] = []
  let loadCount = 0
  const load = async ({ signal }: LoadRequest) => {
    loadCount++
    const { count, position } = database
    await new Promise((resolve) => setTimeout(resolve, random() * 500))
    if (random() < 0.2) throw new Error('503')
    // An app that applies an aborted result would be wrong, and this test would detect it.
    if (!signal.aborted) seen = numbers(1, count)
    return position
  }
  const receiver = loaded((payload) => seen.push(payload as number), load, { bufferMaxMessages: 20 })
  const subscription = client.listen('a', receiver)
  await Promise.all([subscription.ready, publisher.connect()])
  for (let round = 0; round < 300; round++) {
    for (let count = Math.floor(random() * 8); count > 0; count--) {
      const { position } = await publisher.publish('a', database.count + 1)
      database.count++
      database.position = position
    }
    if (random() < 0.05) server.gap('a')
    if (random() < 0.02) server.expireHistory()
    if (random() < 0.02) server.restartHistory()
    if (random() < 0.1) {
      server.drop()
      await vi.advanceTimersByTimeAsync(0)
      // Nothing is published until the publisher has reconnected as well.
      for (let wait = 0; wait < 50 && publisher.state !== 'connected'; wait++) await vi.advanceTimersByTimeAsync(1_000)
    } else await vi.advanceTimersByTimeAsync(random() * 300)
  }
  await vi.advanceTimersByTimeAsync(120_000)
  expect([subscription.state, receiver.isLoading]).toEqual(['active', false])
  expect(seen).toEqual(numbers(1, database.count))
  expect(loadCount).toBeGreaterThan(10)
})

it.each([1, 2, 3, 4])('misses nothing across reloads of the page, whatever fails: seed %i', async (seed) => {
  const random = seededRandom(seed)
  const server = createTestServer({ historyMaxMessages: 10_000, replayPageMessages: 7 })
  const items = new Map<string, string>()
  let published = 0
  let handled = 0
  for (let page = 0; page < 40; page++) {
    let isAlive = true
    const store: PositionStore = {
      getItem: (key) => items.get(key) ?? null,
      setItem: (key, value) => isAlive && items.set(key, value),
      removeItem: (key) => isAlive && items.delete(key),
    }
    const { client } = createTestClient({ server, random, resume: savedPositions(store) })
    const gap = vi.fn()
    client.on('gap', gap)
    const payloads: number[] = []
    client.listen('a', (payload) => payloads.push(payload as number))
    for (let step = 0; step < 20; step++) {
      for (let count = Math.floor(random() * 5); count > 0; count--) server.publish('a', ++published)
      if (random() < 0.1) server.drop()
      await vi.advanceTimersByTimeAsync(random() * 400)
    }
    // Closed in time, or killed: then messages handled since the last write come again.
    const isKilled = random() < 0.5
    isAlive = !isKilled
    await client.close({ flushMs: 0 })
    expect(gap).not.toHaveBeenCalled()
    const first = payloads[0] ?? handled + 1
    const last = payloads.at(-1) ?? handled
    expect(payloads).toEqual(numbers(first, last))
    if (page > 0) expect(first).toBeLessThanOrEqual(handled + 1)
    handled = Math.max(handled, last)
    if (!isKilled)
      expect(JSON.parse(items.get(`webmq:${server.url}`) ?? '{}')).toEqual({ a: `epoch1:${last.toString(36)}.AAAAA` })
    for (let count = Math.floor(random() * 20); count > 0; count--) server.publish('a', ++published)
  }
  expect(handled).toBeGreaterThan(500)
})
