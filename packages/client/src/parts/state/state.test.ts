import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer, type TestServerOptions } from '../../dev/testing/index.js'
import { openStream } from '../stream/index.js'
import { remove, type StateChanges, type StateStore, state } from './index.js'

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

const create = (options: TestServerOptions = {}) => {
  const server = createTestServer({ retain: ['prices.#'], ...options })
  return createTestClient({ server })
}

const shown = (store: StateStore<unknown>) => Object.fromEntries(store.entries())
const listens = (server: ReturnType<typeof create>['server']) =>
  server.received.flatMap((message) => (message.verb === 'listen' ? [message] : []))

describe('state', () => {
  it('shows nothing until the whole state has arrived, then changes', async () => {
    const { client, server } = create({ replayPageMessages: 2 })
    for (const key of ['a', 'b', 'c', 'd', 'e']) server.publish(`prices.${key}`, 1)
    server.publish('prices.a', 2)
    const store = state('prices.*', { client })
    const told: StateChanges<unknown>[] = []
    store.subscribe((changes) => told.push(changes))
    expect([store.size, store.isStale]).toEqual([0, true])
    await store.ready
    expect(shown(store)).toEqual({ 'prices.a': 2, 'prices.b': 1, 'prices.c': 1, 'prices.d': 1, 'prices.e': 1 })
    expect([store.isStale, store.get('prices.a'), store.get('prices.x'), store.size]).toEqual([false, 2, undefined, 5])
    expect(told).toHaveLength(1)
    expect(listens(server)).toHaveLength(3)
    server.publish('prices.b', null)
    server.remove('prices.c')
    await settle()
    expect(store.get('prices.b')).toBeNull()
    expect(store.entries().next().value).toEqual(['prices.b', null])
    expect(told.slice(1).map(({ set, removed }) => [[...set], [...removed]])).toEqual([
      [[['prices.b', null]], ['prices.c']],
    ])
  })

  it('is the same snapshot until something changes', async () => {
    const { client, server } = create()
    server.publish('prices.a', 1)
    const store = state('prices.*', { client })
    const before = store.getSnapshot()
    expect(before).toEqual({ entries: new Map(), isStale: true, error: undefined })
    await store.ready
    const first = store.getSnapshot()
    expect(store.getSnapshot()).toBe(first)
    server.publish('other', 1)
    server.publish('prices.a', 1)
    await settle()
    expect(store.getSnapshot()).toBe(first)
    server.publish('prices.a', 2)
    await settle()
    expect([before.entries.size, first.entries.get('prices.a')]).toEqual([0, 1])
    expect(store.getSnapshot().entries.get('prices.a')).toBe(2)
  })

  it('learns after a reconnect what has changed meanwhile, removed keys included, from its position', async () => {
    const { client, server } = create()
    for (const key of ['a', 'b', 'c']) server.publish(`prices.${key}`, 1)
    const store = state('prices.*', { client })
    await store.ready
    const gaps: unknown[] = []
    client.on('gap', (gap) => gaps.push(gap))
    const isStale: boolean[] = []
    store.subscribe(() => isStale.push(store.isStale))
    server.drop()
    server.remove('prices.a')
    server.publish('prices.b', 2)
    server.publish('prices.d', 1)
    await reconnect()
    expect(shown(store)).toEqual({ 'prices.b': 2, 'prices.c': 1, 'prices.d': 1 })
    expect([isStale.at(0), isStale.at(-1), gaps]).toEqual([true, false, []])
    expect(listens(server).at(-1)).toMatchObject({ state: true, since: 'epoch1:3.AAAAA' })
  })

  it.each([
    ['the log has forgotten', 'expireHistory'],
    ['the log was started anew', 'restartHistory'],
  ] as const)('takes the whole state again when %s', async (_, lose) => {
    const { client, server } = create()
    for (const key of ['a', 'b']) server.publish(`prices.${key}`, 1)
    const store = state('prices.*', { client })
    await store.ready
    server.drop()
    server.remove('prices.a')
    server[lose]()
    server.publish('prices.c', 3)
    await reconnect()
    const left = lose === 'expireHistory' ? { 'prices.b': 1 } : {}
    expect([shown(store), store.isStale]).toEqual([{ ...left, 'prices.c': 3 }, false])
  })

  it('takes the whole state again after a gap, and shows the old one until it is complete', async () => {
    const { client, server } = create()
    server.publish('prices.a', 1)
    server.publish('prices.b', 1)
    const store = state('prices.*', { client })
    await store.ready
    const sizes: number[] = []
    store.subscribe(() => sizes.push(store.size))
    server.isSilent = true
    server.remove('prices.a')
    server.isSilent = false
    server.gap('prices.*')
    await settle()
    expect([shown(store), store.isStale]).toEqual([{ 'prices.b': 1 }, false])
    expect(sizes).not.toContain(0)
    expect(server.patterns).toEqual(['prices.*'])
  })

  it('never calls a state fresh that had a gap while it arrived, and removes nothing by it', async () => {
    const { client, server } = create({ replayPageMessages: 2 })
    for (const key of ['a', 'b', 'c', 'd', 'e']) server.publish(`prices.${key}`, 1)
    const store = state('prices.*', { client })
    await store.ready
    const told: unknown[] = []
    store.subscribe(({ removed }) => told.push([store.size, store.isStale, ...removed]))
    server.gap('prices.*')
    const { length } = listens(server)
    // Of the three pages of the new state, the first has been asked for.
    for (let turn = 0; turn < 100 && listens(server).length === length; turn++) await Promise.resolve()
    server.expireHistory()
    await vi.advanceTimersByTimeAsync(500)
    expect(told).toEqual([[5, true]])
    for (const key of ['a', 'b', 'c', 'd', 'e']) server.publish(`prices.${key}`, 1)
    await vi.advanceTimersByTimeAsync(500)
    expect(told).toEqual([
      [5, true],
      [5, false],
    ])
  })

  it('is stale from a gap that the answer to a reconnect tells until the whole state is there', async () => {
    const { client, server } = create()
    for (const key of ['a', 'b']) server.publish(`prices.${key}`, 1)
    const store = state('prices.*', { client })
    await store.ready
    const told: unknown[] = []
    store.subscribe(() => told.push([store.isStale, shown(store)]))
    server.drop()
    server.restartHistory()
    server.publish('prices.b', 2)
    await reconnect()
    expect(told).toEqual([
      [true, { 'prices.a': 1, 'prices.b': 1 }],
      [false, { 'prices.b': 2 }],
    ])
  })

  it('notifies once per interval, with the last value of each key', async () => {
    const { client, server } = create()
    const store = state('prices.*', { client, every: 100 })
    await vi.advanceTimersByTimeAsync(200)
    const told: (readonly [string, unknown])[][] = []
    store.subscribe(({ set }) => told.push([...set]))
    for (let value = 1; value <= 1_000; value++) server.publish(`prices.${value % 3}`, value)
    expect(told).toEqual([])
    await vi.advanceTimersByTimeAsync(100)
    expect(told).toEqual([
      [
        ['prices.1', 1_000],
        ['prices.2', 998],
        ['prices.0', 999],
      ],
    ])
    expect(store.get('prices.1')).toBe(1_000)
  })

  it('notifies without animation frames too, as in a hidden page', async () => {
    const { client, server } = create()
    const store = state('prices.*', { client, every: 'frame' })
    server.publish('prices.a', 1)
    await vi.advanceTimersByTimeAsync(300)
    expect(store.get('prices.a')).toBe(1)
  })

  it('removes a key for everyone; other listeners get undefined', async () => {
    const { client, server } = create()
    const payloads: unknown[] = []
    client.listen('prices.*', (payload) => payloads.push(payload))
    const store = state('prices.*', { client })
    await client.publish('prices.a', 1)
    const { position } = await remove('prices.a', { client })
    expect([position, store.size, payloads]).toEqual(['epoch1:2.AAAAA', 0, [1, undefined]])
    expect(server.received.at(-1)).toMatchObject({ verb: 'publish', payload: new Uint8Array(0) })
  })

  it.each([
    ['keys', { maxKeys: 2 }, 'more than 2 keys'],
    ['bytes', { maxBytes: 10 }, 'more than 10 bytes'],
  ])('ends with an error beyond its limit of %s', async (_, limits, reason) => {
    const { client, server } = create()
    const errors: string[] = []
    client.on('error', ({ error }) => errors.push((error as Error).message))
    const store = state('prices.*', { client, ...limits })
    server.publish('prices.a', 'four')
    await store.ready
    for (const key of ['b', 'c']) server.publish(`prices.${key}`, 'four')
    await settle()
    expect(store.error).toMatchObject({ code: 'E_STATE_LIMIT', message: expect.stringContaining(reason) })
    expect([errors.length, store.isStale, store.getSnapshot().error]).toEqual([1, true, store.error])
    expect(server.patterns).toEqual([])
  })

  it('is not changed by the messages of a stream', async () => {
    const { client, server } = create()
    server.publish('prices.a', 1)
    const store = state('prices.*', { client })
    await store.ready
    const writer = await openStream('prices.a', { client })
    await writer.append('some text')
    await writer.end()
    await settle()
    expect([...store.entries()]).toEqual([['prices.a', 1]])
  })

  it('rejects ready when the server does not retain the keys, or the user may not listen', async () => {
    const { client, server } = create()
    client.on('error', () => undefined)
    await expect(state('#', { client }).ready).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    server.refuse('listen', 'E_FORBIDDEN')
    await expect(state('prices.b', { client }).ready).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
  })

  it('refuses options that make no sense, and patterns that are none', () => {
    const { client } = create()
    for (const options of [{ every: -1 }, { every: Number.NaN }, { maxKeys: 0 }, { maxBytes: 0 }])
      expect(() => state('prices.*', { client, ...options })).toThrowError(
        expect.objectContaining({ code: 'E_OPTION_INVALID' }),
      )
    expect(() => state('a b', { client })).toThrowError(expect.objectContaining({ code: 'E_PATTERN_INVALID' }))
  })

  it('keeps its last state when it is closed, and leaves no listen behind', async () => {
    const { client, server } = create()
    server.publish('prices.a', 1)
    const store = state('prices.*', { client })
    await store.ready
    store.close()
    server.publish('prices.a', 2)
    await settle()
    expect([shown(store), store.isStale, store.error, server.patterns]).toEqual([
      { 'prices.a': 1 },
      true,
      undefined,
      [],
    ])
  })

  it('goes on when a closed client is opened again', async () => {
    const { client, server } = create()
    server.publish('prices.a', 1)
    const store = state('prices.*', { client })
    await store.ready
    await client.close()
    await settle()
    expect(store.isStale).toBe(true)
    server.publish('prices.a', 2)
    await client.open()
    await settle()
    expect([store.get('prices.a'), store.isStale]).toEqual([2, false])
  })
})
