import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { matches } from '../src/protocol/index.js'
import { createTestClient, createTestServer } from '../src/testing/index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const PATTERNS = ['#', 'a.*', 'a.b', '*.b.#', 'quiet.#']
const DAY_MS = 86_400_000
const KEYS = ['a.b', 'a.c', 'x.b', 'x.b.c', 'a.b.c']

/** The same numbers in [0, 1) for the same seed. */
function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fff_ffff
    return state / 0x8000_0000
  }
}

it.each([1, 2, 3, 4])('loses nothing, doubles nothing and keeps the order whatever fails: seed %i', async (seed) => {
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
  // Each pattern alone on a connection, and all of them on one, where the server sends a message once for all.
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
  // What is still waiting for an answer that got lost is sent again with the next connection.
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
