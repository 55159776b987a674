import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer } from '../../dev/testing/index.js'
import type { ClientEvents, Gap, ListenResult } from '../../index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs everything that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)
/** Longer than any first retry. */
const reconnect = () => vi.advanceTimersByTimeAsync(600)

function listensSent(server: ReturnType<typeof createTestServer>): unknown[] {
  return server.received.filter(({ verb }) => verb === 'listen' || verb === 'unlisten')
}

describe('after a reconnect', () => {
  it('listens again from the last position and handles missed messages, once, before live ones', async () => {
    const { client, server } = createTestClient()
    const handled: unknown[] = []
    const subscription = client.listen('a', (payload, { replayed }) => handled.push([payload, replayed]))
    await subscription.ready
    server.publish('a', 1)
    await settle()
    server.drop()
    await settle()
    expect(subscription.state).toBe('pending')
    server.publish('a', 2)
    server.publish('b', 0)
    server.publish('a', 3)
    const { ready } = subscription
    await reconnect()
    server.publish('a', 4)
    await settle()
    expect(await ready).toEqual({ recovered: true, replayed: 2, position: 'epoch1:4.AAAAA' })
    expect(listensSent(server).at(-1)).toEqual({ verb: 'listen', id: 'l2', pattern: 'a', since: 'epoch1:1.AAAAA' })
    expect(handled).toEqual([
      [1, false],
      [2, true],
      [3, true],
      [4, false],
    ])
  })

  it('gives messages positions, also when the log starts anew meanwhile [P-8.1]', async () => {
    const { client, server } = createTestClient()
    const positions: unknown[] = []
    await client.listen('a', (_payload, { position }) => positions.push(position)).ready
    for (let count = 0; count < 40; count++) server.publish('b', 0)
    server.publish('a', 1)
    server.restartHistory()
    server.publish('a', 2)
    server.publish('a', 3)
    await settle()
    expect(positions).toEqual(['epoch1:15.AAAAA', 'epoch2:1.AAAAA', 'epoch2:2.AAAAA'])
    server.drop()
    await reconnect()
    server.publish('a', 4)
    await settle()
    expect(positions.at(-1)).toBe('epoch2:3.AAAAA')
    expect(listensSent(server).at(-1)).toMatchObject({ since: 'epoch2:2.AAAAA' })
  })

  it('continues from the start of the listen when no message has come since', async () => {
    const { client, server } = createTestClient()
    server.publish('a', 1)
    const handled: unknown[] = []
    await client.listen('a', (payload) => handled.push(payload)).ready
    server.drop()
    await settle()
    server.publish('a', 2)
    await reconnect()
    expect(handled).toEqual([2])
  })

  it('gives each of several overlapping patterns what it missed, also after a long quiet time', async () => {
    const { client, server } = createTestClient()
    const wide: unknown[] = []
    const narrow: unknown[] = []
    await client.listen('#', (payload) => wide.push(payload)).ready
    await client.listen('a.*', (payload) => narrow.push(payload)).ready
    server.publish('b', 1)
    server.publish('b', 2)
    await settle()
    server.drop()
    await settle()
    for (const [key, n] of [
      ['a.x', 3],
      ['b', 4],
      ['a.y', 5],
    ] as const)
      server.publish(key, n)
    await reconnect()
    server.publish('a.z', 6)
    await settle()
    expect(wide).toEqual([1, 2, 3, 4, 5, 6])
    expect(narrow).toEqual([3, 5, 6])
  })

  it('reports no gap for a quiet pattern beside a busy one, though the log lost the messages after its position', async () => {
    const { client, server } = createTestClient({
      server: createTestServer({ historyMaxMessages: 10 }),
      // Not before the messages that it has to miss.
      random: () => 0.5,
    })
    const gap = vi.fn()
    client.on('gap', gap)
    const quiet: unknown[] = []
    const subscription = client.listen('quiet', (payload) => quiet.push(payload))
    await subscription.ready
    await client.listen('busy', () => undefined).ready
    for (let n = 1; n <= 50; n++) server.publish('busy', n)
    await settle()
    server.drop()
    await settle()
    for (let n = 51; n <= 59; n++) server.publish('busy', n)
    server.publish('quiet', 60)
    await reconnect()
    expect(await subscription.ready).toEqual({ recovered: true, replayed: 1, position: 'epoch1:1o.AAAAA' })
    expect(quiet).toEqual([60])
    expect(gap).not.toHaveBeenCalled()
  })

  it('continues an interrupted replay, without duplicates', async () => {
    const { client, server } = createTestClient()
    const handled: unknown[] = []
    await client.listen('a', (payload) => {
      handled.push(payload)
      if (payload === 3) server.drop()
    }).ready
    server.drop()
    await settle()
    for (let n = 1; n <= 6; n++) server.publish('a', n)
    await reconnect()
    // The second retry in a row may wait twice as long.
    await reconnect()
    await reconnect()
    expect(handled).toEqual([1, 2, 3, 4, 5, 6])
  })

  it.each([
    ['history-expired', 'expireHistory'],
    ['epoch-changed', 'restartHistory'],
  ] as const)('reports a gap when the log has lost messages: %s', async (reason, lose) => {
    const { client, server } = createTestClient()
    const gaps: Gap[] = []
    const own: Gap[] = []
    const results: ListenResult[] = []
    client.on('gap', (gap) => gaps.push(gap))
    const handled: unknown[] = []
    const subscription = client.listen('a', (payload) => handled.push(payload))
    subscription.on('gap', (gap) => own.push(gap))
    subscription.on('ready', (result) => results.push(result))
    await subscription.ready
    server.drop()
    await settle()
    server.publish('a', 1)
    server[lose]()
    server.publish('a', 2)
    await reconnect()
    expect(gaps).toEqual([{ pattern: 'a', reason, since: 'epoch1:0.AAAAA' }])
    expect(own).toEqual(gaps)
    expect(results.at(-1)).toMatchObject({ recovered: false, gap: reason, replayed: 1 })
    expect(handled).toEqual([2])
  })

  it('reports a gap when the server keeps no log, but not to new listens', async () => {
    const server = createTestServer({ historyMaxMessages: 0 })
    const { client } = createTestClient({ server })
    const gaps: ClientEvents['gap'][] = []
    client.on('gap', (gap) => gaps.push(gap))
    const old = client.listen('a', () => undefined)
    expect(await old.ready).toEqual({ recovered: false, replayed: 0 })
    server.drop()
    await settle()
    const young = client.listen('b', () => undefined)
    await reconnect()
    expect(gaps).toEqual([{ pattern: 'a', reason: 'no-history' }])
    expect(await old.ready).toEqual({ recovered: false, replayed: 0, gap: 'no-history' })
    expect(await young.ready).toEqual({ recovered: false, replayed: 0 })
  })

  it('continues with a gap when the server cannot read the position', async () => {
    const { client, server } = createTestClient()
    const gaps: Gap[] = []
    client.on('gap', (gap) => gaps.push(gap))
    const handled: unknown[] = []
    await client.listen('a', (payload) => handled.push(payload)).ready
    server.refuse('listen', 'E_POSITION_INVALID')
    server.drop()
    await reconnect()
    server.publish('a', 1)
    await settle()
    // The server has a log. `no-history` said that it keeps none.
    expect(gaps).toEqual([{ pattern: 'a', reason: 'broker-lost' }])
    expect(handled).toEqual([1])
  })

  it('does not listen again with patterns that were unlistened meanwhile', async () => {
    const { client, server } = createTestClient()
    const subscription = client.listen('a', () => undefined)
    await subscription.ready
    server.drop()
    await settle()
    await subscription.close()
    client.listen('b', () => undefined)
    await reconnect()
    expect(server.patterns).toEqual(['b'])
  })

  it('keeps one ready promise while it waits, and has a new one after that', async () => {
    const { client, server } = createTestClient()
    const subscription = client.listen('a', () => undefined)
    const first = subscription.ready
    await first
    server.drop()
    await settle()
    const second = subscription.ready
    expect(second).not.toBe(first)
    await reconnect()
    expect(subscription.ready).toBe(second)
    expect(await second).toMatchObject({ recovered: true })
  })
})

it('reports messages that the server lost for this connection', async () => {
  const { client, server } = createTestClient()
  const gaps: Gap[] = []
  client.on('gap', (gap) => gaps.push(gap))
  const own = vi.fn()
  const subscription = client.listen('a.*', () => undefined)
  subscription.on('gap', own)
  await subscription.ready
  server.gap('a.*')
  await settle()
  expect(gaps).toEqual([{ pattern: 'a.*', reason: 'slow-consumer', since: 'epoch1:0.AAAAA' }])
  expect(own).toHaveBeenCalledTimes(1)
})
