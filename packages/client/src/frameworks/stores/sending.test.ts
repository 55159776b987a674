import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer, type TestServerOptions } from '../../dev/testing/index.js'
import { messagesStore } from './messages.js'
import { publishShown, sendingsOf } from './sending.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const frame = () => vi.advanceTimersByTimeAsync(20)

async function watched(options?: TestServerOptions, pattern = 'chat.*') {
  const server = createTestServer(options)
  const { client } = createTestClient({ server })
  const store = messagesStore(client, pattern)
  const seen: string[] = []
  const text = () =>
    store
      .getSnapshot()
      .messages.map(({ payload, sending }) => (sending ? `${payload} ${sending.state}` : `${payload}`))
      .join(', ')
  store.subscribe(() => seen.push(text()))
  await frame()
  return { client, server, store, seen, text }
}

describe.each([
  ['with a log', {}],
  ['without one', { historyMaxMessages: 0 }],
])('publishShown %s', (_, options: TestServerOptions) => {
  it('shows a message at once, then as it came back, and never twice', async () => {
    const { client, server, seen, text } = await watched(options)
    await client.connect()
    const published = publishShown(client, 'chat.1', 'hi')
    expect(sendingsOf(client).all).toMatchObject([{ payload: 'hi', sending: { state: 'pending' } }])
    await published
    await frame()
    expect(text()).toBe('hi')
    // It came back before the answer.
    server.ignore('publish')
    void publishShown(client, 'chat.1', 'ho')
    await frame()
    expect(text()).toBe('hi, ho pending')
    server.publish('chat.1', 'ho')
    await frame()
    expect(text()).toBe('hi, ho')
    expect(seen.every((text) => !/(h[io])\b.*\1/.test(text))).toBe(true)
  })

  it('shows it as confirmed when it does not come back', async () => {
    const { client, text } = await watched(options)
    await publishShown(client, 'chat.1', 'hi', { echo: false })
    await frame()
    expect(text()).toBe('hi confirmed')
  })

  it('shows nothing any more of a message that was dropped', async () => {
    const { client, server, text } = await watched(options)
    server.isUp = false
    server.drop()
    await frame()
    expect(await publishShown(client, 'chat.1', 'hi', { whenOffline: 'drop' })).toMatchObject({ dropped: true })
    await frame()
    expect(text()).toBe('')
  })

  it('waits for a connection, and is sent once', async () => {
    const { client, server, text } = await watched(options)
    server.isUp = false
    server.drop()
    await vi.advanceTimersByTimeAsync(2_000)
    void publishShown(client, 'chat.1', 'hi')
    await frame()
    expect(text()).toBe('hi pending')
    server.isUp = true
    // The next attempt may be 20 s away.
    await vi.advanceTimersByTimeAsync(30_000)
    expect(text()).toBe('hi')
  })

  it('shows the same text of somebody else too', async () => {
    const { client, server, text } = await watched(options)
    server.ignore('publish')
    const published = publishShown(client, 'chat.1', 'hi', { timeoutMs: 100 })
    await frame()
    server.publish('chat.1', 'hi')
    await vi.advanceTimersByTimeAsync(1_000)
    await expect(published).rejects.toMatchObject({ code: 'E_TIMEOUT' })
    expect(text()).toBe('hi, hi failed')
  })
})

describe('a failed message', () => {
  it('is sent again with its id, and then there once', async () => {
    const { client, server, store, text } = await watched()
    server.loseAnswer('publish')
    const published = publishShown(client, 'chat.1', 'hi', { timeoutMs: 100 })
    await vi.advanceTimersByTimeAsync(1_000)
    await expect(published).rejects.toMatchObject({ code: 'E_TIMEOUT' })
    const failed = store.getSnapshot().messages.at(-1)
    expect(failed?.sending).toMatchObject({ state: 'failed', error: { code: 'E_TIMEOUT' } })
    failed?.sending?.retry()
    await frame()
    expect(text()).toBe('hi')
    const ids = server.received.flatMap((message) => (message.verb === 'publish' ? [message.messageId] : []))
    expect(ids).toEqual([failed?.sending?.id, failed?.sending?.id])
  })

  it('may be discarded; of too many the oldest is', async () => {
    const { client, server, store, text } = await watched()
    const fail = async (payload: unknown) => {
      server.refuse('publish', 'E_FORBIDDEN')
      await expect(publishShown(client, 'chat.1', payload)).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    }
    await fail('hi')
    await frame()
    expect(text()).toBe('hi failed')
    store.getSnapshot().messages[0]?.sending?.discard()
    await frame()
    expect(text()).toBe('')
    for (let n = 0; n < 101; n++) await fail(n)
    expect(sendingsOf(client).all.map(({ payload }) => payload)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
  })

  it('is in the lists of its key alone', async () => {
    const { client, server, text } = await watched({}, 'other.*')
    server.refuse('publish', 'E_FORBIDDEN')
    await expect(publishShown(client, 'chat.1', 'hi')).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    await publishShown(client, 'chat.1', 'ho')
    await frame()
    expect(text()).toBe('')
  })
})
