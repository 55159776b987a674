import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer } from '../../dev/testing/index.js'
import { type Messages, type MessagesOptions, messagesStore } from './messages.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs what needs no time, and the next frame. */
const frame = () => vi.advanceTimersByTimeAsync(20)
/** Longer than the first retry of a connection. */
const reconnected = () => vi.advanceTimersByTimeAsync(2_000)

const payloadsOf = ({ messages }: Messages<unknown>) => messages.map(({ payload }) => payload)

async function watched(options?: MessagesOptions, before: readonly unknown[] = [], pattern = 'chat.1') {
  const { client, server } = createTestClient({ random: () => 0.5 })
  for (const payload of before) server.publish('chat.1', payload)
  const store = messagesStore(client, pattern, options)
  const shown: Messages<unknown>[] = []
  const end = store.subscribe(() => shown.push(store.getSnapshot()))
  await frame()
  return { client, server, store, shown, end, payloads: () => payloadsOf(store.getSnapshot()) }
}

describe('messagesStore', () => {
  it('begins with the last messages, goes on live, and keeps at most as many', async () => {
    const { server, store, shown, payloads } = await watched({ limit: 3 }, [1, 2, 3, 4])
    expect(payloads()).toEqual([2, 3, 4])
    expect(shown.map(({ isStale }) => isStale)).toEqual([false])
    for (const payload of [5, 6]) server.publish('chat.1', payload)
    await frame()
    expect(payloads()).toEqual([4, 5, 6])
    expect(store.getSnapshot()).toMatchObject({ isStale: false, error: undefined })
  })

  it('changes once per frame, however many messages arrive', async () => {
    const { server, shown } = await watched()
    for (let n = 0; n < 50; n++) server.publish('chat.1', n)
    await frame()
    expect(shown.map(({ messages }) => messages.length)).toEqual([0, 50])
  })

  // Symptom: the list of a client that was opened again had new messages and the error of before.
  it('has no error any more when the client is opened again', async () => {
    const { client, server, store, payloads } = await watched()
    client.on('error', () => undefined)
    server.drop({ code: 4500 })
    await frame()
    expect(store.getSnapshot().error).toMatchObject({ code: 'E_PROTOCOL_VIOLATION' })
    await client.open()
    await frame()
    expect(store.getSnapshot().error).toBeUndefined()
    server.publish('chat.1', 1)
    await frame()
    expect(payloads()).toEqual([1])
  })

  it('is stale until the listen is live, also without messages', async () => {
    const { client, server } = createTestClient()
    server.isUp = false
    const store = messagesStore(client, 'chat.1')
    expect(store.getSnapshot()).toBe(store.initial)
    store.subscribe(() => undefined)
    await frame()
    expect(store.getSnapshot()).toMatchObject({ messages: [], isStale: true })
    server.isUp = true
    await reconnected()
    expect(store.getSnapshot()).toMatchObject({ messages: [], isStale: false })
  })

  it('continues after a reconnect without a hole, a double, or a new replay', async () => {
    const { server, payloads, shown } = await watched({}, [1])
    server.publish('chat.1', 2)
    await frame()
    server.drop()
    server.publish('chat.1', 3)
    await reconnected()
    server.publish('chat.1', 4)
    await frame()
    expect(payloads()).toEqual([1, 2, 3, 4])
    expect(shown.every(({ isStale }) => !isStale)).toBe(true)
  })

  it('loads again after a gap: stale meanwhile, then without a hole or a double', async () => {
    const { server, payloads, shown } = await watched({ limit: 3 }, [1, 2, 3])
    server.ignore('listen')
    server.gap('chat.1')
    await frame()
    expect(shown.at(-1)).toMatchObject({ isStale: true })
    expect(payloads()).toEqual([1, 2, 3])
    server.drop()
    for (const payload of [4, 5]) server.publish('chat.1', payload)
    await reconnected()
    server.publish('chat.1', 6)
    await frame()
    expect(shown.at(-1)).toMatchObject({ isStale: false })
    expect(payloads()).toEqual([4, 5, 6])
  })

  it('drops what it had when a gap leaves a hole that older messages fill', async () => {
    const { server, payloads, store } = await watched({ limit: 2 }, [1, 2])
    server.drop()
    for (const payload of [3, 4, 5]) server.publish('chat.1', payload)
    server.expireHistory()
    for (const payload of [6, 7, 8]) server.publish('chat.1', payload)
    await reconnected()
    expect(payloads()).toEqual([7, 8])
    expect(store.getSnapshot()).toMatchObject({ isStale: false, hasOlder: true })
  })

  it('keeps what it shows when nothing is logged', async () => {
    const server = createTestServer({ historyMaxMessages: 0 })
    const { client } = createTestClient({ server })
    const store = messagesStore(client, 'chat.1')
    store.subscribe(() => undefined)
    await frame()
    server.publish('chat.1', 1)
    await frame()
    server.drop()
    await reconnected()
    server.publish('chat.1', 2)
    await frame()
    expect(payloadsOf(store.getSnapshot())).toEqual([1, 2])
    expect(store.getSnapshot().isStale).toBe(false)
  })

  it('counts as loaded when a message of the replay cannot be decoded', async () => {
    const { client, server } = createTestClient()
    client.on('error', () => undefined)
    server.publish('chat.1', 1)
    await client.publish('chat.1', 2)
    const undecodable = {
      encode: () => new Uint8Array(),
      decode: () => {
        throw new Error('no')
      },
    }
    const { client: other } = createTestClient({ server, codec: undecodable })
    other.on('error', () => undefined)
    server.publish('chat.1', new Uint8Array([1]))
    const store = messagesStore(other, 'chat.1')
    store.subscribe(() => undefined)
    await frame()
    expect(store.getSnapshot().isStale).toBe(true)
    await vi.advanceTimersByTimeAsync(1_100)
    expect(store.getSnapshot().isStale).toBe(false)
  })

  it('shows why the server refuses the listen', async () => {
    const { client, server } = createTestClient()
    client.on('error', () => undefined)
    server.revoke('chat.1')
    const store = messagesStore(client, 'chat.1')
    store.subscribe(() => undefined)
    await frame()
    expect(store.getSnapshot()).toMatchObject({ isStale: true, error: { code: 'E_FORBIDDEN' } })
  })

  it('gives up to begin anew when gap follows gap', async () => {
    const { server, store } = await watched()
    for (let n = 0; n < 20; n++) {
      server.ignore('listen')
      server.gap('chat.1')
      await frame()
    }
    const listens = server.received.filter(({ verb }) => verb === 'listen').length
    expect(listens).toBeLessThan(5)
    expect(store.getSnapshot().isStale).toBe(true)
  })
})

describe('a list of several components', () => {
  it('is shared, and one listen goes over the wire', async () => {
    const { client, server, shown, payloads } = await watched({}, [1])
    const other = messagesStore(client, 'chat.1', {})
    const end = other.subscribe(() => undefined)
    expect(payloadsOf(other.getSnapshot())).toEqual([1])
    server.publish('chat.1', 2)
    await frame()
    expect(other.getSnapshot()).toBe(shown.at(-1))
    expect(payloads()).toEqual([1, 2])
    end()
    expect(server.received.filter(({ verb }) => verb === 'listen')).toHaveLength(1)
  })

  it('ends after the grace, and goes on when somebody returns before', async () => {
    const { server, store, end, payloads } = await watched({}, [1])
    end()
    await vi.advanceTimersByTimeAsync(900)
    server.publish('chat.1', 2)
    const again = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(payloads()).toEqual([1, 2])
    expect(server.received.map(({ verb }) => verb)).toEqual(['listen'])
    again()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(server.received.map(({ verb }) => verb)).toEqual(['listen', 'unlisten'])
    expect(store.getSnapshot()).toBe(store.initial)
  })

  it('ends when its last component ends while it loads', async () => {
    const { client, server } = createTestClient()
    await client.connect()
    const timerCount = vi.getTimerCount()
    server.ignore('listen')
    const store = messagesStore(client, 'chat.1', { graceMs: 0 })
    store.subscribe(() => undefined)()
    // The unanswered listen has timed out.
    await vi.advanceTimersByTimeAsync(22_000)
    expect(server.patterns).toEqual([])
    expect(vi.getTimerCount()).toBe(timerCount)
  })
})

describe('loadOlder', () => {
  it('reads what the log has before the oldest, while messages arrive', async () => {
    const { server, store, payloads } = await watched({ limit: 2 }, [1, 2, 3, 4, 5])
    expect(store.getSnapshot().hasOlder).toBe(true)
    const loading = store.getSnapshot().loadOlder()
    server.publish('chat.1', 6)
    await loading
    await frame()
    expect(payloads()).toEqual([2, 3, 4, 5, 6])
    await store.getSnapshot().loadOlder()
    await frame()
    expect(payloads()).toEqual([1, 2, 3, 4, 5, 6])
    expect(store.getSnapshot().hasOlder).toBe(false)
    await store.getSnapshot().loadOlder()
    expect(server.received.filter(({ verb }) => verb === 'history')).toHaveLength(2)
  })

  it('keeps older messages over a gap that the replay closes, and drops the answer to a list that is gone', async () => {
    const { server, store, payloads } = await watched({ limit: 2 }, [1, 2, 3, 4])
    await store.getSnapshot().loadOlder()
    server.gap('chat.1')
    await frame()
    expect(payloads()).toEqual([1, 2, 3, 4])
    server.ignore('history')
    server.drop()
    for (const payload of [5, 6, 7, 8]) server.publish('chat.1', payload)
    server.restartHistory()
    await reconnected()
    expect(payloads()).toEqual([1, 2, 3, 4])
  })

  it('is not offered for a pattern with wildcards, or without a log', async () => {
    const { store } = await watched({ limit: 1 }, [1, 2], 'chat.*')
    expect(store.getSnapshot().hasOlder).toBe(false)
    await store.getSnapshot().loadOlder()
  })

  it('asks the app for messages before the oldest, which then stay', async () => {
    const asked: unknown[] = []
    const loadOlder: MessagesOptions['loadOlder'] = (oldest, limit) => {
      asked.push([oldest?.payload, limit])
      return [-1, 0].map((payload) => ({ key: 'chat.1', payload, replayed: true }))
    }
    const { server, store, payloads } = await watched({ limit: 2, maxMessages: 4, loadOlder }, [1, 2])
    expect(store.getSnapshot().hasOlder).toBe(true)
    await Promise.all([store.getSnapshot().loadOlder(), store.getSnapshot().loadOlder()])
    await frame()
    expect(asked).toEqual([[1, 2]])
    expect(payloads()).toEqual([-1, 0, 1, 2])
    // The list is full.
    expect(store.getSnapshot().hasOlder).toBe(false)
    server.publish('chat.1', 3)
    await frame()
    expect(payloads()).toEqual([0, 1, 2, 3])
  })

  it('shows why it has failed, and may be called again', async () => {
    let failures = 1
    const loadOlder = async () => {
      if (failures-- > 0) throw new Error('503')
      return []
    }
    const { store } = await watched({ limit: 1, loadOlder }, [1])
    await store.getSnapshot().loadOlder()
    await frame()
    expect(store.getSnapshot()).toMatchObject({ hasOlder: true, error: { message: '503' } })
    await store.getSnapshot().loadOlder()
    await frame()
    expect(store.getSnapshot()).toMatchObject({ hasOlder: false, error: undefined })
  })
})
