import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer } from '../src/dev/testing/index.js'
import { matches } from '../src/protocol/index.js'
import { seededRandom } from './seeded-random.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const PATTERNS = ['#', 'a.*', 'a.b', '*.b.#', 'quiet.#']
const DAY_MS = 86_400_000
const KEYS = ['a.b', 'a.c', 'x.b', 'x.b.c', 'a.b.c']

it.each([1, 2, 3, 4])('loses nothing, duplicates nothing and keeps the order whatever fails: seed %i', async (seed) => {
  const random = seededRandom(seed)
  const server = createTestServer({ historyMaxMessages: 10_000 })
  const connect = () =>
    createTestClient({ server, random, ackTimeoutMs: DAY_MS, offlineQueue: { maxAgeMs: DAY_MS } }).client
  const handled: [pattern: string, payloads: unknown[]][] = []
  const gap = vi.fn()
  const listen = (client: ReturnType<typeof connect>, pattern: string) => {
    const payloads: unknown[] = []
    handled.push([pattern, payloads])
    client.on('gap', gap)
    return client.listen(pattern, (payload) => payloads.push(payload)).ready
  }
  // Each pattern on a connection of its own, and all on one connection, where the server sends a message once for all.
  const together = connect()
  await Promise.all(PATTERNS.flatMap((pattern) => [listen(connect(), pattern), listen(together, pattern)]))

  const publisher = connect()
  const sent: [key: string, payload: number][] = []
  const results: Promise<{ duplicate: boolean }>[] = []
  for (let n = 0; n < 1_000; n++) {
    const key = KEYS[Math.floor(random() * KEYS.length)] ?? ''
    sent.push([key, n])
    results.push(publisher.publish(key, n))
    if (random() < 0.05) server.loseAnswer('publish')
    if (random() < 0.01) server.refuse('listen', 'E_BROKER_UNAVAILABLE')
    if (random() < 0.03) server.drop(random() < 0.5 ? {} : { code: 4001, retryAfterMs: 100 })
    if (random() < 0.1) await vi.advanceTimersByTimeAsync(random() * 500)
  }
  // The next connection sends requests again whose answer was lost.
  for (let round = 0; round < 10; round++) {
    server.drop()
    await vi.advanceTimersByTimeAsync(30_000)
  }
  const settled = await Promise.all(results)

  expect(settled.some(({ duplicate }) => duplicate)).toBe(true)
  expect(gap).not.toHaveBeenCalled()
  for (const [pattern, payloads] of handled) {
    expect([pattern, payloads]).toEqual([
      pattern,
      sent.flatMap(([key, payload]) => (matches(pattern, key) ? [payload] : [])),
    ])
  }
})

/** Size of the log: fewer messages than pass while a pattern is quiet, more than a client misses at once. */
const RING_MESSAGES = 50
const MAX_MISSED = 40

it.each([1, 2, 3, 4])('reports no false gap, whatever the log has lost: seed %i', async (seed) => {
  const random = seededRandom(seed)
  // For half of the seeds, replays come in pages.
  const server = createTestServer({
    historyMaxMessages: RING_MESSAGES,
    heartbeatMs: 2_000,
    ...(seed % 2 === 0 && { replayPageMessages: 7 }),
  })
  const { client } = createTestClient({ server, random })
  const gap = vi.fn()
  client.on('gap', gap)
  const handled: [pattern: string, from: number, payloads: unknown[]][] = []
  let n = 0
  let cutsLeft = 0
  const listen = (pattern: string, options?: { last: number }) => {
    const payloads: unknown[] = []
    // With `last`, completeness begins with the first replayed message.
    handled.push([pattern, options ? Number.NaN : n, payloads])
    client.listen(
      pattern,
      (payload, { replayed }) => {
        payloads.push(payload)
        // In the middle of a replay, while later listens have no answer yet.
        if (replayed && random() < 0.1 && cutsLeft-- > 0) server.drop()
      },
      options,
    )
  }
  const sent: [key: string, payload: number][] = []
  const publish = () => {
    const key = random() < 0.02 ? 'quiet.one' : (KEYS[Math.floor(random() * KEYS.length)] ?? '')
    sent.push([key, ++n])
    server.publish(key, n)
  }
  for (const pattern of ['quiet.#', ...PATTERNS]) listen(pattern)
  await client.connect()
  await vi.advanceTimersByTimeAsync(0)
  for (let round = 0; round < 200; round++) {
    for (let count = random() * MAX_MISSED; count > 0; count--) publish()
    await vi.advanceTimersByTimeAsync(0)
    cutsLeft = 2
    if (random() < 0.1) server.refuse('listen', 'E_BROKER_UNAVAILABLE')
    if (random() < 0.1) listen('#', { last: 20 })
    if (random() < 0.3) server.drop()
    if (random() < 0.5) await vi.advanceTimersByTimeAsync(0)
    for (let count = random() * 5; count > 0; count--) publish()
    // Until every listen is answered and every replay is complete.
    for (let wait = 0; wait < 10; wait++) await vi.advanceTimersByTimeAsync(1_000)
  }
  for (let wait = 0; wait < 60; wait++) await vi.advanceTimersByTimeAsync(1_000)

  expect(gap).not.toHaveBeenCalled()
  for (const [pattern, from, payloads] of handled) {
    const first = Number.isNaN(from) ? Number(payloads[0]) : from
    const expected = sent.flatMap(([key, payload]) => (payload >= first && matches(pattern, key) ? [payload] : []))
    expect([pattern, payloads]).toEqual([pattern, expected])
  }
})
