import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Gap } from '../../core/events/events.js'
import type { Message } from '../../core/types.js'
import { createTestClient, type TestClientOptions } from '../../dev/testing/index.js'
import { loaded } from '../load/index.js'
import { type LatestOptions, latest } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

async function setUp(options: LatestOptions = { every: 100 }, clientOptions: TestClientOptions = {}) {
  const { client, server } = createTestClient({ random: () => 0, ...clientOptions })
  onTestFinished(() => client.close({ flushMs: 0 }))
  const seen: unknown[] = []
  const subscription = client.listen(
    'p.*',
    latest((payload, { key }: Message<unknown>) => seen.push(`${key}=${payload}`), options),
  )
  await subscription.ready
  const pass = (ms = 100) => vi.advanceTimersByTimeAsync(ms)
  return { client, server, seen, subscription, pass }
}

describe('latest', () => {
  it('hands over the newest message of each key, once per interval', async () => {
    const { server, seen, pass } = await setUp()
    for (let n = 0; n <= 9; n++) for (const key of ['p.a', 'p.b']) server.publish(key, n)
    await pass(99)
    expect(seen).toEqual([])
    await pass(1)
    expect(seen).toEqual(['p.a=9', 'p.b=9'])
    await pass(1_000)
    server.publish('p.b', 10)
    await pass()
    expect(seen).toEqual(['p.a=9', 'p.b=9', 'p.b=10'])
  })

  it('asks the server to leave out what is replaced anyway', async () => {
    const { server } = await setUp()
    expect(server.received).toContainEqual(expect.objectContaining({ verb: 'listen', overflow: 'latest' }))
  })

  it('follows animation frames, and a timer where there are none', async () => {
    const frames: (() => void)[] = []
    vi.stubGlobal('requestAnimationFrame', (run: () => void) => frames.push(run))
    vi.stubGlobal('cancelAnimationFrame', () => frames.splice(0))
    onTestFinished(() => void vi.unstubAllGlobals())
    const { server, seen, pass } = await setUp({ every: 'frame' })
    for (const n of [1, 2]) server.publish('p.a', n)
    await pass(0)
    expect(frames).toHaveLength(1)
    frames.shift()?.()
    expect(seen).toEqual(['p.a=2'])
    server.publish('p.a', 3)
    await pass(249)
    expect(seen).toEqual(['p.a=2'])
    await pass(1)
    expect([seen, frames]).toEqual([['p.a=2', 'p.a=3'], []])
  })

  it('ends at the last value of each key over lost connections, gaps and closing', async () => {
    const { client, server, seen, pass } = await setUp()
    for (let n = 0; n < 3; n++) server.publish('p.a', n)
    server.publish('p.quiet', 'q')
    server.drop()
    for (let n = 3; n < 6; n++) server.publish('p.a', n)
    await pass()
    expect(seen).toEqual(['p.a=5', 'p.quiet=q'])
    server.publish('p.quiet', 'r')
    await pass(0)
    await client.close({ flushMs: 0 })
    await pass()
    expect(seen).toHaveLength(2)
    void client.open()
    await pass(200)
    expect(seen).toEqual(['p.a=5', 'p.quiet=q', 'p.quiet=r'])
  })

  it('hands over what came before a gap, then tells the gap', async () => {
    const { client, server, seen, pass, subscription } = await setUp()
    subscription.on('gap', ({ reason }: Gap) => seen.push(reason))
    client.on('gap', () => undefined)
    const told: string[] = []
    const inner = { deliver: () => told.push('message'), gap: () => told.push('gap') }
    await client.listen('p.#', latest(inner, { every: 100 })).ready
    server.publish('p.a', 1)
    server.gap('p.#')
    await pass(0)
    expect(told).toEqual(['message', 'gap'])
  })

  it('hands over early, and all of them, when more keys wait than it keeps', async () => {
    const { server, seen, pass } = await setUp({ every: 100, maxKeys: 2 })
    for (const key of ['p.a', 'p.b', 'p.a', 'p.c']) server.publish(key, 1)
    await pass(0)
    expect(seen).toEqual(['p.a=1', 'p.b=1'])
    await pass()
    expect(seen).toEqual(['p.a=1', 'p.b=1', 'p.c=1'])
  })

  it('hands over nothing after `close`', async () => {
    const { server, seen, pass, subscription } = await setUp()
    server.publish('p.a', 1)
    await pass(0)
    void subscription.close()
    await pass()
    expect(seen).toEqual([])
    expect(vi.getTimerCount()).toBe(1)
  })

  it('hands over what waits when the listen is ended', async () => {
    const { client, server, seen, pass } = await setUp()
    client.on('error', () => undefined)
    server.publish('p.a', 1)
    server.revoke('p.*')
    await pass(0)
    expect(seen).toEqual(['p.a=1'])
  })

  it('goes on with the next page of a replay when this one was handed over', async () => {
    const server = (await setUp()).server
    for (let n = 0; n < 10; n++) server.publish(`p.${n}`, n)
    const { client } = createTestClient({ server })
    onTestFinished(() => client.close({ flushMs: 0 }))
    const batches: number[] = []
    client.listen(
      'p.*',
      latest((messages) => batches.push(messages.length), { every: 100, batch: true }),
      { last: 10 },
    )
    await vi.advanceTimersByTimeAsync(1_000)
    expect(batches).toEqual([10])
  })

  it('can be loaded', async () => {
    const { client, server, pass } = await setUp()
    const seen: unknown[] = []
    await client.listen(
      'q',
      loaded(
        latest((payload) => seen.push(payload), { every: 100 }),
        async () => undefined,
      ),
    ).ready
    server.publish('q', 1)
    server.publish('q', 2)
    await pass()
    expect(seen).toEqual([2])
  })

  it('reports what a handler throws, and goes on', async () => {
    const { client, server, pass } = await setUp()
    const errors: unknown[] = []
    const seen: unknown[] = []
    client.on('error', ({ error }) => errors.push(error))
    await client.listen(
      'q.*',
      latest(
        (payload) => {
          seen.push(payload)
          throw new Error('no')
        },
        { every: 0 },
      ),
    ).ready
    server.publish('q.a', 1)
    server.publish('q.b', 2)
    await pass()
    expect([seen, errors.length]).toEqual([[1, 2], 2])
  })

  it.each([{ every: -1 }, { every: Number.NaN }, { maxKeys: 0 }])('refuses %j', (options) => {
    expect(() => latest(() => undefined, options)).toThrow(Object.keys(options)[0])
  })
})
