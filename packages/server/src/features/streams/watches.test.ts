import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { memoryOptions } from '../../../test/memory-options.js'
import { MemoryBroker } from '../../adapters/brokers/memory/broker.js'
import { Deadlines } from '../../kernel/base/deadlines.js'
import type { InboundMessage } from '../../kernel/ports/broker.js'
import type { LocalListener } from '../../kernel/routing/local-listeners.js'
import { StreamWatches } from './watches.js'

const READER = { isClosed: false, meter: undefined }

// Reads of the log take turns of the event loop.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

async function start(maxStreamsPerNode = 1_000) {
  const broker = new MemoryBroker(memoryOptions({ history: ['#=100000'] }))
  const ignore = () => undefined
  await broker.start({ deliver: () => true, status: ignore, gap: ignore, refused: ignore })
  const deadlines = new Deadlines({
    now: Date.now,
    onError: (error) => {
      throw error
    },
  })
  const listened = new Map<string, LocalListener['receive']>()
  const readCounts = new Map<string, number>()
  const watches = new StreamWatches(
    {
      broker: {
        read: (range, patterns, reader) => {
          for (const key of range.since === undefined ? patterns : [])
            readCounts.set(key, (readCounts.get(key) ?? 0) + 1)
          return broker.read(range, patterns, reader)
        },
      },
      isRetained: () => false,
      listen: async (key, { receive }) => {
        listened.set(key, receive)
        return () => void listened.delete(key)
      },
      deadlines,
      limits: {
        streamLeaseMs: 60_000,
        maxStreamBytes: 1_000_000,
        maxStreamAppends: 1_000,
        maxStreamsPerUser: 16,
        maxStreamsPerNode,
        maxOutboxBytes: 1_000_000,
      },
    },
    () => undefined,
  )
  const write = async (key: string, ...kinds: string[]) => {
    for (const [sequence, kind] of kinds.entries())
      await broker.publish({
        key,
        payload: Buffer.from(kind === 'append' ? JSON.stringify('x'.repeat(1_000)) : ''),
        isBinary: false,
        attributes: { stream: `s:${sequence}:${kind}` },
      })
  }
  const lengthOf = async (key: string) => {
    let length = 0
    await watches.use(
      key,
      async (watch) => {
        watch.isAsked = true
        length = watch.fold.length
      },
      READER,
    )
    return length
  }
  const publish = broker.publish.bind(broker)
  return { watches, deadlines, listened, readCounts, write, lengthOf, publish }
}

// Symptom: 40 connections that asked for one ended stream took all of the event loop: 300 ms per turn. Cause: it was folded
// anew for each request.
it('folds an ended stream once for those who ask soon after each other', async () => {
  const { watches, deadlines, listened, readCounts, write, lengthOf } = await start()
  await write('a', 'start', 'append', 'end')
  for (let second = 0; second < 20; second += 4) {
    expect(await lengthOf('a')).toBe(1_000)
    await vi.advanceTimersByTimeAsync(4_000)
  }
  expect(readCounts.get('a')).toBe(1)
  expect(watches.keptBytes).toBeGreaterThan(2_000)
  await vi.advanceTimersByTimeAsync(4_000)
  expect([watches.keptBytes, listened.size]).toEqual([0, 0])
  expect(await lengthOf('a')).toBe(1_000)
  expect(readCounts.get('a')).toBe(2)
  watches.stop()
  expect([watches.keptBytes, listened.size, deadlines.size]).toEqual([0, 0, 0])
})

it('keeps one no longer for messages of its key', async () => {
  const { watches, listened, write, lengthOf, publish } = await start()
  await write('a', 'start', 'append', 'end')
  await lengthOf('a')
  for (let second = 0; second < 6; second++) {
    const message = { key: 'a', payload: Buffer.from('1'), isBinary: false }
    const { position } = await publish(message)
    listened.get('a')?.({ ...message, position, timeMs: 0 } as InboundMessage)
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect([watches.keptBytes, listened.size]).toEqual([0, 0])
  watches.stop()
})

it('keeps 64 of them, those that were asked for last, and nothing of keys without a stream', async () => {
  const { watches, listened, readCounts, write, lengthOf } = await start()
  for (let index = 0; index < 100; index++) {
    await write(`k${index}`, 'start', 'append', 'end')
    await lengthOf(`k${index}`)
    await lengthOf('k0')
    expect(await lengthOf(`none${index}`)).toBe(0)
  }
  expect(listened.size).toBe(64)
  expect(watches.keptBytes).toBeLessThan(64 * 6_000)
  expect(readCounts.get('k0')).toBe(1)
  await lengthOf('k1')
  expect(readCounts.get('k1')).toBe(2)
  watches.stop()
})

it('gives them up first for another stream', async () => {
  const { watches, listened, write, lengthOf } = await start(2)
  for (const key of ['a', 'b', 'c']) await write(key, 'start', 'append', 'end')
  for (const key of ['a', 'b', 'c']) expect(await lengthOf(key)).toBe(1_000)
  expect([...listened.keys()]).toEqual(['b', 'c'])
  watches.stop()
})

// Symptom: 7,360 streams of a PUT with a time to live of 5 s left 2,459 watches on each node, and as many channels at Redis. Cause:
// only the number of watches was bounded.
it.each([
  ['until a time to live is over', { ttlSeconds: 2 }, 2_000],
  ['until its end', { expiresAt: new Date(5_000).toISOString() }, 5_000],
  ['for a minute, however long it lives', { ttlSeconds: 3_600 }, 60_000],
  ['for a minute', {}, 60_000],
])('keeps an active stream without a lease that nobody uses %s', async (_, config, keptMs) => {
  vi.setSystemTime(0)
  const { watches, deadlines, listened, lengthOf, publish } = await start()
  for (let number = 0; number < 200; number++)
    await publish({
      ...{ key: `k${number}`, payload: Buffer.from(JSON.stringify({ contentType: 'text/plain', ...config })) },
      ...{ isBinary: false, attributes: { stream: `s${number}:0:start:token,0` } },
    })
  for (let number = 0; number < 200; number++) await lengthOf(`k${number}`)
  expect([listened.size, watches.activeCount]).toEqual([200, 200])
  await vi.advanceTimersByTimeAsync(keptMs - 100)
  expect(listened.size).toBe(200)
  await vi.advanceTimersByTimeAsync(300)
  expect([listened.size, watches.activeCount, watches.keptBytes, deadlines.size]).toEqual([0, 0, 0, 0])
  watches.stop()
})

it('keeps one as long as somebody uses it, and a minute more', async () => {
  vi.setSystemTime(0)
  const { watches, listened, lengthOf, publish } = await start()
  const attributes = { stream: 's:0:start:token,0' }
  await publish({ key: 'a', payload: Buffer.from('{"contentType":"text/plain"}'), isBinary: false, attributes })
  let leave: () => void = () => undefined
  const used = watches.use('a', () => new Promise<void>((resolve) => (leave = resolve)), READER)
  await vi.advanceTimersByTimeAsync(300_000)
  expect(listened.size).toBe(1)
  leave()
  await used
  for (let minute = 0; minute < 3; minute++) {
    await vi.advanceTimersByTimeAsync(59_000)
    expect(listened.size).toBe(1)
    await lengthOf('a')
  }
  await vi.advanceTimersByTimeAsync(61_000)
  expect(listened.size).toBe(0)
  watches.stop()
})
