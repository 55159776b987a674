import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer, type TestServer } from '../../dev/testing/index.js'
import type { ClientError } from '../../index.js'
import { iterate } from '../iterate/index.js'
import { loaded } from '../load/index.js'
import { type PositionStore, savedPositions } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** Runs everything that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)
/** Longer than the write interval. */
const written = () => vi.advanceTimersByTimeAsync(1_000)

/** A `sessionStorage` in memory. */
class MemoryStore implements PositionStore {
  readonly items = new Map<string, string>()
  writeCount = 0

  getItem(key: string): string | null {
    return this.items.get(key) ?? null
  }

  setItem(key: string, value: string): void {
    this.writeCount++
    this.items.set(key, value)
  }

  removeItem(key: string): void {
    this.items.delete(key)
  }

  /** Positions by pattern. */
  get positions(): unknown {
    return JSON.parse(this.items.get('webmq:ws://test.invalid/ws') ?? '{}')
  }
}

/** Opens another page with the same store. */
function openPage(server: TestServer, store?: PositionStore) {
  const { client } = createTestClient({ server, resume: savedPositions(store) })
  const errors: ClientError[] = []
  client.on('error', (error) => errors.push(error))
  return { client, errors }
}

describe('resume', () => {
  it('continues where the previous page stopped, and says whether anything is missing', async () => {
    const [server, store] = [createTestServer(), new MemoryStore()]
    const before = openPage(server, store).client
    await before.listen('a', () => undefined).ready
    server.publish('a', 1)
    await written()
    expect(store.positions).toEqual({ a: 'epoch1:1.AAAAA' })
    // The page vanishes.
    server.drop({ code: 4501 })
    await settle()
    server.publish('a', 2)
    const { client } = openPage(server, store)
    const handled: unknown[] = []
    const first = client.listen('a', (payload, { replayed }) => handled.push([payload, replayed]))
    const second = client.listen('a', () => undefined)
    expect(await first.ready).toEqual({ recovered: true, replayed: 1, position: 'epoch1:2.AAAAA' })
    expect(await second.ready).toMatchObject({ recovered: true })
    expect(handled).toEqual([[2, true]])
    // A later subscription joins the existing ones.
    expect(await client.listen('a', () => 3).ready).toMatchObject({ recovered: false, replayed: 0 })
    await client.close()
    server.publish('a', 3)
    server.restartHistory()
    expect(await openPage(server, store).client.listen('a', () => undefined).ready).toMatchObject({
      recovered: false,
      gap: 'epoch-changed',
    })
  })

  it('does not affect listens with a start option', async () => {
    const [server, store] = [createTestServer(), new MemoryStore()]
    store.setItem('webmq:ws://test.invalid/ws', '{"a":"epoch1:0.AAAAA"}')
    server.publish('a', 1)
    const { client } = openPage(server, store)
    await client.listen('a', () => undefined, { last: 1 }).ready
    expect(server.received).toMatchObject([{ verb: 'listen', last: 1 }])
    expect(server.received[0]).not.toHaveProperty('since')
  })

  it('writes at most once a second, and when the page goes away or the client is closed', async () => {
    const page = new EventTarget()
    vi.stubGlobal('addEventListener', page.addEventListener.bind(page))
    vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page))
    const [server, store] = [createTestServer(), new MemoryStore()]
    const { client } = openPage(server, store)
    await client.listen('a', () => undefined).ready
    await written()
    const { writeCount } = store
    for (let n = 1; n <= 100; n++) server.publish('a', n)
    await settle()
    expect(store.writeCount).toBe(writeCount)
    page.dispatchEvent(new Event('pagehide'))
    expect([store.writeCount, store.positions]).toEqual([writeCount + 1, { a: 'epoch1:2s.AAAAA' }])
    server.publish('a', 101)
    await settle()
    await client.close()
    expect([store.writeCount, store.positions]).toEqual([writeCount + 2, { a: 'epoch1:2t.AAAAA' }])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('saves the handled messages only: not those that a loop has not taken or that wait for load', async () => {
    const [server, store] = [createTestServer(), new MemoryStore()]
    const { client } = openPage(server, store)
    const looped = iterate('loop', { client })
    await looped.subscription.ready
    const subscription = client.listen(
      'load',
      loaded(
        () => undefined,
        () => new Promise<void>(() => undefined),
      ),
    )
    await subscription.ready
    for (const n of [1, 2, 3]) server.publish('loop', n)
    server.publish('load', 4)
    await settle()
    const iterator = looped[Symbol.asyncIterator]()
    await iterator.next()
    await iterator.next()
    await written()
    expect(store.positions).toEqual({ loop: 'epoch1:2.AAAAA' })
  })

  it('advances a quiet pattern with messages of other patterns', async () => {
    const [server, store] = [createTestServer(), new MemoryStore()]
    const { client } = openPage(server, store)
    await client.listen('quiet', () => undefined).ready
    await client.listen('busy', () => undefined).ready
    for (let n = 1; n <= 20; n++) server.publish('busy', n)
    await settle()
    await written()
    expect(store.positions).toEqual({ quiet: 'epoch1:k.AAAAA', busy: 'epoch1:k.AAAAA' })
  })

  it('deletes the position of a pattern that the app unlistens', async () => {
    const [server, store] = [createTestServer(), new MemoryStore()]
    const { client } = openPage(server, store)
    const subscription = client.listen('a', () => undefined)
    await subscription.ready
    await written()
    expect(store.items.size).toBe(1)
    await subscription.close()
    await written()
    expect(store.items.size).toBe(0)
  })

  it('keeps the position when a listen ends and starts again at once, as in React development mode', async () => {
    // Symptom: a reloaded page misses messages, in development only. Cause: `unlisten` deleted a position before its
    // first use.
    const [server, store] = [createTestServer(), new MemoryStore()]
    store.setItem('webmq:ws://test.invalid/ws', '{"a":"epoch1:0.AAAAA"}')
    server.publish('a', 1)
    const { client } = openPage(server, store)
    void client.listen('a', () => undefined).close()
    expect(await client.listen('a', () => undefined).ready).toMatchObject({ recovered: true, replayed: 1 })
  })

  it('keeps a limited number of patterns, the most recently moved ones', async () => {
    const [server, store] = [createTestServer(), new MemoryStore()]
    const old = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`old.${index}`, 'epoch1:0.AAAAA']))
    store.setItem('webmq:ws://test.invalid/ws', JSON.stringify(old))
    const { client } = openPage(server, store)
    await Promise.all(['x', 'y'].map((pattern) => client.listen(pattern, () => undefined).ready))
    await written()
    const patterns = Object.keys(store.positions as object)
    expect(patterns).toHaveLength(100)
    expect(patterns).toEqual(expect.arrayContaining(['x', 'y', 'old.2', 'old.99']))
  })

  it('uses the session storage of the page without a store of its own', async () => {
    const store = new MemoryStore()
    vi.stubGlobal('sessionStorage', store)
    const server = createTestServer()
    const { client } = openPage(server)
    await client.listen('a', () => undefined).ready
    await client.close()
    expect(store.positions).toEqual({ a: 'epoch1:0.AAAAA' })
  })

  it.each<[string, PositionStore | undefined]>([
    ['is full', Object.assign(new MemoryStore(), { setItem: () => fail('QuotaExceededError') })],
    [
      'is forbidden',
      { getItem: () => fail('SecurityError'), setItem: () => fail('SecurityError'), removeItem: () => 0 },
    ],
    ['is not there', undefined],
  ])('reports a store that %s once, and continues without it', async (_name, store) => {
    const server = createTestServer()
    const { client, errors } = openPage(server, store)
    const handled: unknown[] = []
    await client.listen('a', (payload) => handled.push(payload)).ready
    for (const n of [1, 2, 3]) {
      server.publish('a', n)
      await written()
    }
    await client.close()
    expect(errors).toHaveLength(1)
    expect(handled).toEqual([1, 2, 3])
  })

  it('ignores invalid data of a store', async () => {
    const [server, store] = [createTestServer(), new MemoryStore()]
    store.setItem('webmq:ws://test.invalid/ws', '{"a":"not a position","b":7,"c":null}')
    const { client, errors } = openPage(server, store)
    const results = ['a', 'b', 'c'].map((pattern) => client.listen(pattern, () => undefined).ready)
    const result = { recovered: false, replayed: 0, position: 'epoch1:0.AAAAA' }
    expect(await Promise.all(results)).toEqual([result, result, result])
    expect(errors).toEqual([])
  })
})

function fail(name: string): never {
  throw new DOMException('no', name)
}
