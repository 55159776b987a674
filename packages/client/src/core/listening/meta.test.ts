import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestServer, type TestServer } from '../../dev/testing/index.js'
import { history } from '../../parts/history/index.js'
import { WebMQClient } from '../client.js'
import type { Message } from '../types.js'

let server: TestServer
let client: WebMQClient
const seen: Message<unknown>[] = []
const keep = (_: unknown, message: Message<unknown>) => void seen.push(message)
const payloads = () => seen.map(({ payload }) => payload)

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
  seen.length = 0
  server = createTestServer({ verifyToken: (token) => ({ userId: token === 'ada' ? 'Ädä @1' : token }) })
  client = new WebMQClient({ url: 'ws://test', token: 'ada', WebSocket: server.WebSocket, random: () => 0 })
})

afterEach(async () => {
  await client.close({ flushMs: 0 })
  vi.useRealTimers()
})

const settled = () => vi.advanceTimersByTimeAsync(1)

describe('meta', () => {
  it('comes with live messages, replays and reads of the history, to those who ask', async () => {
    const plain: object[] = []
    await client.listen('other', keep).ready
    await client.listen('chat', keep, { meta: true }).ready
    await client.publish('chat', 1)
    await settled()
    const meta = { userId: 'Ädä @1', timeMs: 1_000_000, id: expect.any(String) }
    expect(seen).toEqual([expect.objectContaining({ payload: 1, ...meta })])
    const { messages } = await history('chat', { client, meta: true })
    expect(messages).toEqual([expect.objectContaining(meta)])
    expect((await history('chat', { client })).messages[0]).not.toHaveProperty('userId')
    const other = new WebMQClient({ url: 'ws://test', token: 'bob', WebSocket: server.WebSocket })
    await other.listen('chat', (_, message) => plain.push(message), { last: 1 }).ready
    await client.publish('chat', 2)
    await settled()
    expect(plain).toHaveLength(2)
    for (const message of plain) expect(message).not.toHaveProperty('timeMs')
    await other.close({ flushMs: 0 })
  })

  it('is asked for by a second listen of a pattern, and again after a reconnect', async () => {
    await client.listen('chat', () => undefined).ready
    await client.listen('chat', keep, { meta: true }).ready
    const asked = () => server.received.filter((message) => message.verb === 'listen').map((message) => message.meta)
    expect(asked()).toEqual([undefined, true])
    server.drop()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(asked()).toEqual([undefined, true, true])
    server.publish('chat', 1)
    await settled()
    expect(seen).toEqual([expect.objectContaining({ payload: 1, timeMs: 1_001_000 })])
  })
})

describe('an ephemeral publish', () => {
  it('reaches listeners, and has no position', async () => {
    await client.listen('chat', keep).ready
    expect(await client.publish('chat', 'typing', { ephemeral: true })).not.toHaveProperty(
      'position',
      expect.anything(),
    )
    await client.publish('chat', 'text')
    await settled()
    expect(payloads()).toEqual(['typing', 'text'])
    expect(seen.map(({ position }) => position !== undefined)).toEqual([false, true])
    expect((await history('chat', { client })).messages.map(({ payload }) => payload)).toEqual(['text'])
  })
})

describe('a listen that does not recover', () => {
  it('goes on live after a reconnect, without a gap, beside one that recovers', async () => {
    const gaps: string[] = []
    const recovered: unknown[] = []
    client.on('gap', ({ pattern }) => gaps.push(pattern))
    const cursors = client.listen('cursors', keep, { recover: false })
    const chat = client.listen('cursors', (payload) => recovered.push(payload))
    await Promise.all([cursors.ready, chat.ready])
    server.publish('cursors', 1)
    await settled()
    server.drop()
    server.publish('cursors', 2)
    await vi.advanceTimersByTimeAsync(1_000)
    server.publish('cursors', 3)
    await settled()
    expect(payloads()).toEqual([1, 3])
    expect(recovered).toEqual([1, 2, 3])
    expect(gaps).toEqual([])
    await chat.close()
    await settled()
    server.restartHistory()
    server.drop()
    await vi.advanceTimersByTimeAsync(1_000)
    server.publish('cursors', 4)
    await settled()
    expect(payloads()).toEqual([1, 3, 4])
    expect(gaps).toEqual([])
    const since = server.received.filter((message) => message.verb === 'listen').map((message) => message.since)
    expect(since.filter((position) => position !== undefined)).toHaveLength(1)
  })
})

describe('history that pages back', () => {
  it('gives the newest before a position, and says when the log no longer has older ones', async () => {
    for (let count = 0; count < 7; count++) server.publish('chat', count)
    const first = await history('chat', { client, limit: 3 })
    expect(first.messages.map(({ payload }) => payload)).toEqual([4, 5, 6])
    server.publish('chat', 7)
    const second = await history('chat', { client, before: first.messages[0]?.position, limit: 3 })
    expect(second.messages.map(({ payload }) => payload)).toEqual([1, 2, 3])
    expect(second.gap).toBeUndefined()
    const third = await history('chat', { client, before: second.messages[0]?.position, limit: 3 })
    expect(third.messages.map(({ payload }) => payload)).toEqual([0])
    expect(third).toMatchObject({ gap: undefined, more: false })
    server.expireHistory()
    const gone = await history('chat', { client, before: second.messages[0]?.position, limit: 3 })
    expect(gone).toMatchObject({ messages: [], gap: 'history-expired', more: false })
  })

  it('refuses a second start', async () => {
    const read = history('chat', { client, before: 'epoch1:1.AAAAA', since: 'epoch1:1.AAAAA' })
    await expect(read).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
    await expect(history('chat', { client, before: 'a b' })).rejects.toMatchObject({ code: 'E_POSITION_INVALID' })
  })
})
