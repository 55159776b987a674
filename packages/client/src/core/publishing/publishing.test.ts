import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer, type TestServer } from '../../dev/testing/index.js'
import type { PublishResult } from '../../index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)
const reconnect = () => vi.advanceTimersByTimeAsync(600)

/** Payloads that the server has received, oldest first. */
function published(server: TestServer): unknown[] {
  return server.received.flatMap((message) => (message.verb === 'publish' ? [JSON.parse(text(message.payload))] : []))
}

function text(payload: string | Uint8Array): string {
  return typeof payload === 'string' ? payload : new TextDecoder().decode(payload)
}

/** Outcome of a promise, if it has settled. */
async function outcomeOf(promise: Promise<PublishResult>): Promise<unknown> {
  return promise.catch((error: unknown) => (error as { code: string }).code)
}

describe('publish', () => {
  it('resolves with id and position when the broker has the message', async () => {
    const { client, server } = createTestClient()
    const result = await client.publish('chat.42.message', { text: 'hi' })
    expect(result).toEqual({
      id: expect.stringMatching(/^[\w-]{10,64}$/),
      duplicate: false,
      position: 'epoch1:1.AAAAA',
    })
    expect(server.received).toEqual([
      expect.objectContaining({ key: 'chat.42.message', messageId: result.id, echo: true }),
    ])
    expect(published(server)).toEqual([{ text: 'hi' }])
  })

  it('generates unique message ids, across clients too', async () => {
    const { client, server } = createTestClient()
    const { client: other } = createTestClient({ server })
    const results = await Promise.all([1, 2, 3].flatMap((n) => [client.publish('a', n), other.publish('a', n)]))
    expect(new Set(results.map(({ id }) => id)).size).toBe(6)
  })

  it('takes the id of the caller, and reports a duplicate', async () => {
    const { client, server } = createTestClient()
    expect(await client.publish('a', 1, { id: 'order-7' })).toMatchObject({ id: 'order-7', duplicate: false })
    expect(await client.publish('a', 1, { id: 'order-7' })).toEqual({
      id: 'order-7',
      duplicate: true,
      position: 'epoch1:1.AAAAA',
    })
    await expect(client.publish('a', 1, { id: 'order 7' })).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
    expect(server.received).toHaveLength(2)
  })

  it.each([
    ['the server would not know a second copy any more', {}, 121_000, 0],
    ['the device has slept, in which one clock stands still', {}, 0, 121_000],
    ['the server knows no ids', { dedupeMaxIds: 0 }, 0, 0],
  ])('does not send again what was sent, when %s', async (_why, limits, passedMs, sleptMs) => {
    const server = createTestServer({ limits })
    const { client } = createTestClient({ server, offlineQueue: { maxAgeMs: 3_600_000 } })
    await client.connect()
    server.loseAnswer('publish')
    const sent = outcomeOf(client.publish('a', 1))
    await settle()
    server.isUp = false
    server.drop()
    await settle()
    const unsent = outcomeOf(client.publish('a', 2))
    await vi.advanceTimersByTimeAsync(passedMs)
    vi.setSystemTime(Date.now() + sleptMs)
    server.isUp = true
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await sent).toBe('E_TIMEOUT')
    expect(await unsent).toMatchObject({ duplicate: false })
    expect(published(server)).toEqual([1, 2])
  })

  it('sends again what the server has refused, however long it waits', async () => {
    const { client, server } = createTestClient({ offlineQueue: { maxAgeMs: 3_600_000 } })
    await client.connect()
    server.refuse('publish', 'E_RATE_LIMIT')
    const refused = outcomeOf(client.publish('a', 1))
    await settle()
    server.isUp = false
    server.drop()
    await vi.advanceTimersByTimeAsync(200_000)
    server.isUp = true
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await refused).toMatchObject({ duplicate: false })
  })

  it('does not echo with echo: false', async () => {
    const { client } = createTestClient()
    const handler = vi.fn()
    await client.listen('a', handler).ready
    await client.publish('a', 1)
    await client.publish('a', 2, { echo: false })
    expect(handler.mock.calls.map(([payload]) => payload)).toEqual([1])
  })

  it('sends bytes as they were at the call', async () => {
    const { client, server } = createTestClient()
    const bytes = new Uint8Array([9, 1, 2])
    const results = [client.publish('a', bytes.subarray(1)), client.publish('a', bytes.buffer)]
    bytes.fill(0)
    await Promise.all(results)
    expect(server.received).toMatchObject([{ payload: new Uint8Array([1, 2]) }, { payload: new Uint8Array([9, 1, 2]) }])
  })

  it('sends JSON as it was at the call', async () => {
    const { client, server } = createTestClient()
    const payload = { n: 1 }
    const result = client.publish('a', payload)
    payload.n = 2
    await result
    expect(published(server)).toEqual([{ n: 1 }])
  })

  it.each([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a bigint', 1n],
  ])('rejects %s', async (_name, payload) => {
    const { client } = createTestClient()
    await expect(client.publish('a', payload)).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
  })

  it.each(['', 'a b', 'a.*', '#', 'x'.repeat(256)])('rejects the key %j without asking the server', async (key) => {
    const { client, server } = createTestClient()
    await expect(client.publish(key, 1)).rejects.toMatchObject({ code: 'E_KEY_INVALID' })
    await settle()
    expect(server.received).toEqual([])
  })

  it('checks key and payload against the limits of the server, in bytes', async () => {
    const { client, server } = createTestClient({
      server: createTestServer({ limits: { maxPayloadBytes: 10, maxKeyBytes: 4 } }),
    })
    const early = outcomeOf(client.publish('a', 'x'.repeat(9)))
    expect(await early).toBe('E_PAYLOAD_TOO_LARGE')
    expect(await outcomeOf(client.publish('a', 'ä'.repeat(4)))).toMatchObject({ duplicate: false })
    await expect(client.publish('a', 'ä'.repeat(5))).rejects.toThrow('payload exceeds the limit: 12 bytes, at most 10')
    expect(await outcomeOf(client.publish('a', new Uint8Array(11)))).toBe('E_PAYLOAD_TOO_LARGE')
    expect(await outcomeOf(client.publish('abcde', 1))).toBe('E_KEY_INVALID')
    expect(server.received).toHaveLength(1)
  })

  it("rejects with the server's error", async () => {
    const { client, server } = createTestClient()
    server.refuse('publish', 'E_FORBIDDEN')
    await expect(client.publish('a', 1)).rejects.toMatchObject({
      code: 'E_FORBIDDEN',
      retryable: false,
      message: expect.stringContaining('not granted to this identity'),
    })
  })

  it('rejects when no acknowledgement comes in time, and later publishes still resolve', async () => {
    const { client, server } = createTestClient({ ackTimeoutMs: 3_000 })
    await client.connect()
    server.ignore('publish')
    server.ignore('publish')
    const first = outcomeOf(client.publish('a', 1))
    const second = outcomeOf(client.publish('a', 2, { timeoutMs: 1_000 }))
    const third = outcomeOf(client.publish('a', 3))
    expect(await third).toMatchObject({ duplicate: false })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await second).toBe('E_TIMEOUT')
    await vi.advanceTimersByTimeAsync(1_999)
    expect(vi.getTimerCount()).toBeGreaterThan(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(await first).toBe('E_TIMEOUT')
  })

  it('resolves without an acknowledgement with ack: none', async () => {
    const { client, server } = createTestClient()
    server.ignore('publish')
    expect(await client.publish('a', 1, { ack: 'none' })).toEqual({ id: expect.any(String), duplicate: false })
    await settle()
    expect(server.received).toEqual([expect.not.objectContaining({ id: expect.anything() })])
  })

  it('reports errors of messages without acknowledgement', async () => {
    const { client, server } = createTestClient()
    const errors: unknown[] = []
    client.on('error', ({ error }) => errors.push(error))
    server.refuse('publish', 'E_FORBIDDEN')
    await client.publish('a', 1, { ack: 'none' })
    await settle()
    expect(errors).toEqual([expect.objectContaining({ code: 'E_FORBIDDEN' })])
  })

  it('stops waiting when the signal is aborted', async () => {
    const { client, server } = createTestClient()
    const controller = new AbortController()
    server.ignore('publish')
    const sent = outcomeOf(client.publish('a', 1, { signal: controller.signal }))
    await settle()
    controller.abort()
    expect(await sent).toBe('E_ABORTED')
    expect(await outcomeOf(client.publish('a', 2, { signal: controller.signal }))).toBe('E_ABORTED')
    server.drop()
    await reconnect()
    expect(published(server)).toEqual([1])
  })

  it('refuses messages beyond the limit in flight', async () => {
    const { client, server } = createTestClient()
    await client.connect()
    server.isSilent = true
    const results = Array.from({ length: 16_385 }, (_, n) => outcomeOf(client.publish('a', n)))
    expect(await results.at(-1)).toBe('E_QUEUE_FULL')
    await client.close({ flushMs: 0 })
    expect(await results[0]).toBe('E_CLOSED')
  })
})

/** The server refused what came too fast; the publish failed, though the same one would have passed a second later. */
describe('a server that wants no more for now', () => {
  it('gets the messages again after a pause, in order', async () => {
    const { client, server } = createTestClient({ random: () => 0.5 })
    await client.connect()
    for (let count = 0; count < 3; count++) server.refuse('publish', 'E_RATE_LIMIT')
    const early = [1, 2].map((n) => client.publish('a', n))
    await settle()
    const late = client.publish('a', 3)
    expect(client.status.queueLength).toBe(3)
    await vi.advanceTimersByTimeAsync(500)
    await vi.advanceTimersByTimeAsync(750)
    expect(await Promise.all([...early, late])).toMatchObject([1, 2, 3].map(() => ({ duplicate: false })))
    const tries = published(server)
    expect(tries.slice(0, 3)).toEqual([1, 2, 1])
    expect(tries.slice(-1)).toEqual([1])
    await client.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  /**
   * Under load publishes of one client arrived out of order. It was late: its pause ended before it had read the refusal of
   * a second message, and what it had kept in the pause overtook that one.
   */
  it('gets nothing more while something that was sent before is unanswered', async () => {
    const { client, server } = createTestClient({ ackTimeoutMs: 5_000 })
    await client.connect()
    server.refuse('publish', 'E_RATE_LIMIT')
    server.ignore('publish')
    const refused = client.publish('a', 1)
    const unanswered = outcomeOf(client.publish('a', 2))
    await settle()
    const late = client.publish('a', 3)
    await vi.advanceTimersByTimeAsync(4_900)
    expect(published(server)).toEqual([1, 2])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await unanswered).toBe('E_TIMEOUT')
    expect(await Promise.all([refused, late])).toMatchObject([{ duplicate: false }, { duplicate: false }])
    expect(published(server)).toEqual([1, 2, 1, 3])
  })

  it('is not waited for by messages that must not wait', async () => {
    const { client, server } = createTestClient()
    server.refuse('publish', 'E_RATE_LIMIT')
    await client.connect()
    expect(await outcomeOf(client.publish('a', 1, { whenOffline: 'reject' }))).toBe('E_RATE_LIMIT')
  })

  it('is waited for as long as for a connection', async () => {
    const { client, server } = createTestClient({ offlineQueue: { maxAgeMs: 5_000 } })
    await client.connect()
    for (let count = 0; count < 100; count++) server.refuse('publish', 'E_RATE_LIMIT')
    const result = outcomeOf(client.publish('a', 1))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await result).toBe('E_TIMEOUT')
  })
})

/** A clock that was set forward expired every publish, and one that was set back stalled them. */
it.each([-86_400_000, 86_400_000])('counts time by a clock that nobody sets: %i ms', async (jumpMs) => {
  const { client, server } = createTestClient({ ackTimeoutMs: 1_000 })
  server.isUp = false
  const waiting = outcomeOf(client.publish('a', 1))
  vi.setSystemTime(Date.now() + jumpMs)
  await vi.advanceTimersByTimeAsync(1_000)
  server.isUp = true
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await waiting).toMatchObject({ duplicate: false })
  server.ignore('publish')
  const unanswered = outcomeOf(client.publish('a', 2))
  vi.setSystemTime(Date.now() + jumpMs)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(await unanswered).toBe('E_TIMEOUT')
})

describe('without a connection', () => {
  it('keeps messages and sends them in order, after authentication and after listening', async () => {
    const server = createTestServer({ verifyToken: () => ({ userId: 'ann' }) })
    const { client } = createTestClient({ server, token: 'secret' })
    server.isUp = false
    const handled: unknown[] = []
    client.listen('a', (payload) => handled.push(payload))
    const results = [1, 2, 3].map((n) => client.publish('a', n))
    await settle()
    server.isUp = true
    await reconnect()
    await Promise.all(results)
    expect(server.received.map(({ verb }) => verb)).toEqual(['auth', 'listen', 'publish', 'publish', 'publish'])
    expect(handled).toEqual([1, 2, 3])
  })

  it('sends what was in flight again, with the same ids and in order, before what came later', async () => {
    const { client, server } = createTestClient()
    const handled: unknown[] = []
    await client.listen('a', (payload) => handled.push(payload)).ready
    server.loseAnswer('publish')
    server.ignore('publish')
    const first = client.publish('a', 1)
    const second = client.publish('a', 2)
    await settle()
    server.drop()
    await settle()
    const third = client.publish('a', 3)
    await reconnect()
    const results = await Promise.all([first, second, third])
    expect(results.map(({ duplicate }) => duplicate)).toEqual([true, false, false])
    expect(published(server)).toEqual([1, 2, 1, 2, 3])
    expect(handled).toEqual([1, 2, 3])
  })

  it('keeps a limited number of messages', async () => {
    const { client, server } = createTestClient({ offlineQueue: { maxMessages: 2 } })
    server.isUp = false
    const results = [1, 2, 3].map((n) => outcomeOf(client.publish('a', n)))
    expect(await results[2]).toBe('E_QUEUE_FULL')
    await vi.advanceTimersByTimeAsync(12_000)
    await expect(client.publish('a', 4)).rejects.toThrow('offline queue is full: maxMessages 2')
    server.isUp = true
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await Promise.all(results.slice(0, 2))).toMatchObject([{ duplicate: false }, { duplicate: false }])
    expect(published(server)).toEqual([1, 2])
  })

  it('keeps a limited number of bytes, and has room again after a message has left', async () => {
    const { client, server } = createTestClient({ offlineQueue: { maxBytes: 20 } })
    server.isUp = false
    const controller = new AbortController()
    const first = outcomeOf(client.publish('a', 'ä'.repeat(4), { signal: controller.signal }))
    const second = outcomeOf(client.publish('a', 'ä'.repeat(5)))
    expect(await second).toBe('E_QUEUE_FULL')
    controller.abort()
    expect(await first).toBe('E_ABORTED')
    const third = outcomeOf(client.publish('a', 'ä'.repeat(5)))
    server.isUp = true
    await reconnect()
    expect(await third).toMatchObject({ duplicate: false })
  })

  it('keeps messages for a limited time, whatever the number of attempts', async () => {
    const { client, server } = createTestClient({ offlineQueue: { maxAgeMs: 30_000 } })
    server.isUp = false
    const early = outcomeOf(client.publish('a', 1))
    await vi.advanceTimersByTimeAsync(20_000)
    const late = outcomeOf(client.publish('a', 2))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await early).toBe('E_TIMEOUT')
    server.isUp = true
    await vi.advanceTimersByTimeAsync(19_999)
    expect(await late).toMatchObject({ duplicate: false })
    expect(published(server)).toEqual([2])
  })

  it('rejects at once with whenOffline: reject, also messages in flight when the connection is lost', async () => {
    const { client, server } = createTestClient({ whenOffline: 'reject' })
    expect(await outcomeOf(client.publish('a', 1))).toBe('E_OFFLINE')
    await client.connect()
    server.ignore('publish')
    const inFlight = outcomeOf(client.publish('a', 2))
    await settle()
    server.drop()
    expect(await inFlight).toBe('E_DISCONNECTED')
  })

  it('drops messages with whenOffline: drop, and says so', async () => {
    const { client, server } = createTestClient()
    const result = await client.publish('cursor', { x: 1 }, { whenOffline: 'drop' })
    expect(result).toEqual({ id: expect.any(String), duplicate: false, dropped: true })
    await reconnect()
    expect(published(server)).toEqual([])
  })
})
