import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchedClient as watched } from '../../../test/watched-client.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

describe('states', () => {
  it('is idle, and has no connection, until it is used', async () => {
    const { client, server } = watched()
    await settle()
    expect(client.state).toBe('idle')
    expect(server.connectionCount).toBe(0)
    client.listen('a', () => undefined)
    expect(client.state).toBe('connecting')
    await settle()
    expect(client.state).toBe('connected')
    expect(server.connectionCount).toBe(1)
  })

  it('reports every change, with the reason and the time of the next attempt', async () => {
    const { client, server, changes } = watched()
    await client.connect()
    server.drop({ code: 4001 })
    await settle()
    expect(changes).toEqual([
      { state: 'connecting', previous: 'idle' },
      { state: 'connected', previous: 'connecting' },
      {
        state: 'reconnecting',
        previous: 'connected',
        code: 4001,
        error: expect.objectContaining({ code: 'E_DRAIN' }),
        attempt: 1,
        retryInMs: 250,
      },
    ])
    await vi.advanceTimersByTimeAsync(249)
    expect(client.state).toBe('reconnecting')
    await vi.advanceTimersByTimeAsync(1)
    expect(client.state).toBe('connected')
    await client.close()
    expect(changes.slice(3)).toEqual([
      { state: 'connected', previous: 'reconnecting' },
      { state: 'closed', previous: 'connected' },
    ])
  })

  it('tells what has changed, and what was before', async () => {
    const { client, server } = watched()
    const seen: unknown[] = []
    client.on('status', ({ state, connection }, previous) => seen.push([previous.state, state, connection?.session]))
    await client.connect()
    server.drop()
    await vi.advanceTimersByTimeAsync(600)
    expect(seen).toEqual([
      ['idle', 'connecting', undefined],
      ['connecting', 'connected', 'session-1'],
      ['connected', 'reconnecting', undefined],
      ['reconnecting', 'connected', 'session-2'],
    ])
  })

  it('is lost after a while only, until the next connection', async () => {
    const { client, server } = watched({ lostAfterMs: 3_000 })
    const seen: boolean[] = []
    client.on('status', ({ lost }, previous) => lost !== previous.lost && seen.push(lost))
    await client.connect()
    server.isUp = false
    server.drop()
    await vi.advanceTimersByTimeAsync(2_999)
    expect(seen).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(seen).toEqual([true])
    server.isUp = true
    await vi.advanceTimersByTimeAsync(10_000)
    expect(seen).toEqual([true, false])
  })

  it('tells how many messages wait, once a turn', async () => {
    const { client, server } = watched()
    await client.connect()
    server.isUp = false
    server.drop()
    await settle()
    const seen: number[] = []
    client.on('status', ({ queueLength }, previous) => queueLength !== previous.queueLength && seen.push(queueLength))
    const published = [client.publish('a', 1), client.publish('a', 2)]
    expect(client.status.queueLength).toBe(2)
    await settle()
    expect(seen).toEqual([2])
    server.isUp = true
    void client.connect()
    await settle()
    await Promise.all(published)
    expect(seen).toEqual([2, 0])
  })

  it('tries at once when the app asks it to, but not before the server allows', async () => {
    const { client, server } = watched({ reconnect: { minMs: 20_000 } })
    await client.connect()
    server.drop()
    await settle()
    expect(client.state).toBe('reconnecting')
    void client.connect()
    await settle()
    expect(client.state).toBe('connected')
    server.drop({ code: 4001, retryAfterMs: 5_000 })
    await settle()
    void client.connect()
    await vi.advanceTimersByTimeAsync(4_999)
    expect(client.state).toBe('reconnecting')
    await vi.advanceTimersByTimeAsync(1)
    expect(client.state).toBe('connected')
  })

  it('stops calling a removed handler', async () => {
    const { client, server } = watched()
    const handler = vi.fn()
    const off = client.on('status', handler)
    await client.connect()
    handler.mockClear()
    off()
    off()
    server.drop()
    await settle()
    expect(handler).not.toHaveBeenCalled()
  })

  it('resolves connect when connected, at once if it is, and rejects when closed', async () => {
    const { client } = watched()
    await client.connect()
    await client.connect()
    await client.close()
    await expect(client.connect()).rejects.toMatchObject({ code: 'E_CLOSED' })
  })
})

describe('close', () => {
  it('waits for acknowledgements, then leaves nothing behind', async () => {
    const { client, server } = watched()
    const subscription = client.listen('a', () => undefined)
    const result = client.publish('a', 1)
    const closed = client.close()
    const errors: unknown[] = []
    client.on('error', ({ error, pattern }) => errors.push([error, pattern]))
    const refused = client.listen('b', () => undefined)
    expect(refused.state).toBe('closed')
    await expect(refused.ready).rejects.toMatchObject({ code: 'E_CLOSED' })
    expect(errors).toEqual([[expect.objectContaining({ code: 'E_CLOSED' }), 'b']])
    await expect(client.publish('a', 2)).rejects.toMatchObject({ code: 'E_CLOSED' })
    await closed
    expect(await result).toMatchObject({ duplicate: false })
    await settle()
    expect(subscription.state).toBe('closed')
    expect(server.connectionCount).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('does not wait for answers to listens, and does not retry them', async () => {
    const { client, server } = watched()
    await client.connect()
    server.ignore('listen')
    const ready = expect(client.listen('a', () => undefined).ready).rejects.toMatchObject({ code: 'E_CLOSED' })
    const subscription = client.listen('b', () => undefined)
    await subscription.ready
    server.ignore('unlisten')
    const gone = subscription.close()
    await client.close()
    await Promise.all([ready, gone])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('rejects messages that are not acknowledged in time', async () => {
    const { client, server } = watched()
    server.isUp = false
    const result = expect(client.publish('a', 1)).rejects.toMatchObject({ code: 'E_CLOSED' })
    const closed = client.close({ flushMs: 2_000 })
    await vi.advanceTimersByTimeAsync(1_999)
    expect(client.state).toBe('reconnecting')
    await vi.advanceTimersByTimeAsync(1)
    await Promise.all([result, closed])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is immediate when nothing waits, also before the first use, and may be repeated', async () => {
    const { client, states } = watched()
    await Promise.all([client.close(), client.close()])
    await client[Symbol.asyncDispose]()
    expect(states()).toEqual(['closed'])
    expect(vi.getTimerCount()).toBe(0)
  })
})
