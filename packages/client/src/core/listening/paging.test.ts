import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer } from '../../dev/testing/index.js'
import type { Gap, ListenResult } from '../../index.js'
import { iterate } from '../../parts/iterate/index.js'

beforeEach(() => {
  vi.useFakeTimers()
  // A pause of no time would reconnect before the test has gone on.
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** Runs everything that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)
/** Longer than any of the first retries. */
const reconnect = () => vi.advanceTimersByTimeAsync(2_000)

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

function listensSent(server: ReturnType<typeof createTestServer>): unknown[] {
  return server.received.filter(({ verb }) => verb === 'listen')
}

describe('a replay in pages [P-6.9]', () => {
  it('is one replay: ready resolves once, with the sum, before live messages', async () => {
    const { client, server } = createTestClient({ server: createTestServer({ replayPageMessages: 4 }) })
    const handled: unknown[] = []
    const results: ListenResult[] = []
    const subscription = client.listen('a', (payload) => handled.push(payload))
    subscription.on('ready', (result) => results.push(result))
    await subscription.ready
    server.drop()
    await settle()
    for (const n of numbers(1, 10)) server.publish('a', n)
    await reconnect()
    server.publish('a', 11)
    await settle()
    expect(handled).toEqual(numbers(1, 11))
    expect(results.slice(1)).toEqual([{ recovered: true, replayed: 10, position: 'epoch1:a.AAAAA' }])
    expect(listensSent(server).slice(1)).toMatchObject([
      { since: 'epoch1:0.AAAAA' },
      { since: 'epoch1:4.AAAAA' },
      { since: 'epoch1:8.AAAAA' },
    ])
  })

  it('starts with the last messages, or with those of a time span', async () => {
    const server = createTestServer({ replayPageMessages: 2 })
    for (const n of numbers(1, 3)) server.publish('a', n)
    await vi.advanceTimersByTimeAsync(60_000)
    for (const n of numbers(4, 8)) server.publish('a', n)
    const { client } = createTestClient({ server })
    const last: unknown[] = []
    const rewound: unknown[] = []
    const results = await Promise.all([
      client.listen('a', (payload) => last.push(payload), { last: 6 }).ready,
      client.listen('a', (payload) => rewound.push(payload), { rewind: '30s' }).ready,
    ])
    expect(last).toEqual(numbers(3, 8))
    expect(rewound).toEqual(numbers(4, 8))
    expect(results).toMatchObject([
      { recovered: false, replayed: 6 },
      { recovered: false, replayed: 5 },
    ])
    expect(listensSent(server)[1]).toMatchObject({ rewindMs: 30_000 })
  })

  it('neither duplicates nor loses live messages of another handler of the pattern', async () => {
    const server = createTestServer({ replayPageMessages: 2 })
    const { client } = createTestClient({ server })
    const live: unknown[] = []
    const replayed: unknown[] = []
    await client.listen('a', (payload) => live.push(payload)).ready
    for (const n of numbers(1, 6)) server.publish('a', n)
    await settle()
    let next = 7
    const { ready } = client.listen(
      'a',
      (payload) => {
        replayed.push(payload)
        // A new message arrives in the middle of every page.
        if (next <= 10) server.publish('a', next++)
      },
      { since: 'epoch1:0.AAAAA' },
    )
    await ready
    await settle()
    server.publish('a', 11)
    await settle()
    expect(live).toEqual(numbers(1, 11))
    expect(replayed).toEqual(numbers(1, 11))
  })

  it('continues from the last handled message when the connection is lost in the middle', async () => {
    const { client, server } = createTestClient({ server: createTestServer({ replayPageMessages: 3 }) })
    const handled: unknown[] = []
    const results: ListenResult[] = []
    const subscription = client.listen('a', (payload) => {
      handled.push(payload)
      if (payload === 5) server.drop()
    })
    subscription.on('ready', (result) => results.push(result))
    await subscription.ready
    server.drop()
    await settle()
    for (const n of numbers(1, 10)) server.publish('a', n)
    const { ready } = subscription
    await reconnect()
    await reconnect()
    expect(handled).toEqual(numbers(1, 10))
    expect(listensSent(server).map((message) => (message as { since?: string }).since)).toEqual([
      undefined,
      'epoch1:0.AAAAA',
      'epoch1:3.AAAAA',
      'epoch1:5.AAAAA',
      'epoch1:8.AAAAA',
    ])
    expect(await ready).toEqual({ recovered: true, replayed: 10, position: 'epoch1:a.AAAAA' })
    expect(results).toHaveLength(2)
  })

  it('is not recovered when one of its pages has a gap, and reports the gap once', async () => {
    const { client, server } = createTestClient({
      server: createTestServer({ replayPageMessages: 3, historyMaxMessages: 8 }),
    })
    const gaps: Gap[] = []
    client.on('gap', (gap) => gaps.push(gap))
    const handled: unknown[] = []
    const subscription = client.listen('a', (payload) => handled.push(payload))
    await subscription.ready
    server.drop()
    await settle()
    for (const n of numbers(1, 10)) server.publish('a', n)
    const { ready } = subscription
    await reconnect()
    expect(await ready).toEqual({ recovered: false, replayed: 8, position: 'epoch1:a.AAAAA', gap: 'history-expired' })
    expect(gaps).toEqual([{ pattern: 'a', reason: 'history-expired', since: 'epoch1:0.AAAAA' }])
    expect(handled).toEqual(numbers(3, 10))
  })

  it('is paced by its loop: at most one page waits', async () => {
    const server = createTestServer({ replayPageMessages: 5 })
    for (const n of numbers(1, 20)) server.publish('a', n)
    const { client } = createTestClient({ server })
    const iteration = iterate('a', { client, last: 20, bufferMaxMessages: 5 })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(listensSent(server)).toHaveLength(1)
    const payloads: unknown[] = []
    for await (const { payload } of iteration) {
      payloads.push(payload)
      if (payload === 6) expect(listensSent(server)).toHaveLength(2)
      if (payload === 20) break
    }
    expect(payloads).toEqual(numbers(1, 20))
  })

  it('does not wait for a loop that never runs', async () => {
    const { client, server } = createTestClient({ server: createTestServer({ replayPageMessages: 3 }) })
    const handled: unknown[] = []
    const { subscription: idle } = iterate('a', { client })
    const subscription = client.listen('a', (payload) => handled.push(payload))
    await subscription.ready
    server.drop()
    await settle()
    for (const n of numbers(1, 10)) server.publish('a', n)
    await reconnect()
    expect(handled).toEqual(numbers(1, 10))
    expect([subscription.state, idle.state]).toEqual(['active', 'pending'])
  })

  it('ends in the middle when its subscription ends', async () => {
    const server = createTestServer({ replayPageMessages: 2 })
    for (const n of numbers(1, 6)) server.publish('a', n)
    const { client } = createTestClient({ server })
    const handled: unknown[] = []
    const subscription = client.listen(
      'a',
      (payload) => {
        handled.push(payload)
        if (payload === 3) void subscription.close()
      },
      { last: 6 },
    )
    await settle()
    expect(handled).toEqual([1, 2, 3])
    expect(server.patterns).toEqual([])
    expect(listensSent(server)).toHaveLength(2)
  })
})

describe('the position of a pong [P-9.7]', () => {
  it('is where a quiet subscription continues, though the log lost the messages after its own position', async () => {
    const server = createTestServer({ historyMaxMessages: 10, heartbeatMs: 1_000 })
    const { client } = createTestClient({ server })
    const gap = vi.fn()
    client.on('gap', gap)
    const subscription = client.listen('quiet', () => undefined)
    await subscription.ready
    for (const n of numbers(1, 50)) server.publish('other', n)
    await vi.advanceTimersByTimeAsync(1_500)
    server.drop()
    await settle()
    server.publish('quiet', 51)
    await reconnect()
    expect(await subscription.ready).toEqual({ recovered: true, replayed: 1, position: 'epoch1:1f.AAAAA' })
    expect(gap).not.toHaveBeenCalled()
  })

  it('does not count while a replay is incomplete', async () => {
    const server = createTestServer({ replayPageMessages: 2, heartbeatMs: 1_000 })
    for (const n of numbers(1, 6)) server.publish('a', n)
    const { client } = createTestClient({ server })
    const iteration = iterate('a', { client, last: 6 })
    const payloads: unknown[] = []
    // The first page stays unread while pings are answered.
    await vi.advanceTimersByTimeAsync(3_000)
    expect(server.received.filter(({ verb }) => verb === 'ping').length).toBeGreaterThan(0)
    server.drop()
    await reconnect()
    for await (const { payload } of iteration) {
      payloads.push(payload)
      if (payload === 6) break
    }
    expect(payloads).toEqual(numbers(1, 6))
  })

  it('still counts after live messages without a position', async () => {
    // Symptom: a false gap. Cause: a message of a key without a log made the client forget its position.
    const server = createTestServer({ historyMaxMessages: 10 })
    const { client } = createTestClient({ server })
    const subscription = client.listen('quiet', () => undefined)
    await client.listen('busy.#', () => undefined).ready
    await subscription.ready
    for (const n of numbers(1, 50)) server.publish('busy', n)
    server.publishUnlogged('busy.unlogged', 0)
    await settle()
    server.drop()
    await reconnect()
    expect(await subscription.ready).toMatchObject({ recovered: true })
  })
})
