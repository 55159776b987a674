import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchedClient as watched } from '../../test/watched-client.js'

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
        reason: '',
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

  it('emits connected, disconnected, reconnecting and reconnected', async () => {
    const { client, server } = watched()
    const events: unknown[] = []
    for (const event of ['connected', 'disconnected', 'reconnecting', 'reconnected', 'lost', 'restored'] as const) {
      client.on(event, (details) => events.push([event, 'session' in details ? details.session : undefined]))
    }
    await client.connect()
    server.drop()
    await vi.advanceTimersByTimeAsync(600)
    expect(events).toEqual([
      ['connected', 'session-1'],
      ['disconnected', undefined],
      ['reconnecting', undefined],
      ['connected', 'session-2'],
      ['reconnected', 'session-2'],
    ])
  })

  it('emits lost after a while only, and restored after lost only', async () => {
    const { client, server } = watched({ lostAfterMs: 3_000 })
    const events: unknown[] = []
    client.on('lost', (event) => events.push(event))
    client.on('restored', ({ session }) => events.push(session))
    await client.connect()
    server.isUp = false
    server.drop()
    await vi.advanceTimersByTimeAsync(2_999)
    expect(events).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(events).toEqual([{ afterMs: 3_000 }])
    server.isUp = true
    await vi.advanceTimersByTimeAsync(10_000)
    expect(events).toEqual([{ afterMs: 3_000 }, 'session-2'])
  })

  it('stops calling a removed handler', async () => {
    const { client, server } = watched()
    const handler = vi.fn()
    const off = client.on('disconnected', handler)
    await client.connect()
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
    const gone = subscription.unlisten()
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
