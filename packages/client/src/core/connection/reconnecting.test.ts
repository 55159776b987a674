import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchedClient as watched } from '../../../test/watched-client.js'
import { iterate } from '../../parts/iterate/index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

describe('reconnecting', () => {
  it('waits longer after each failure, up to a limit, and never gives up', async () => {
    const { server, changes, client } = watched()
    server.isUp = false
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(120_000)
    const waits = changes.flatMap(({ retryInMs }) => retryInMs ?? [])
    expect(waits.slice(0, 5)).toEqual([250, 500, 1_000, 2_000, 2_500])
    expect(waits.slice(22, 26)).toEqual([2_500, 2_500, 10_000, 10_000])
    expect(changes.map(({ attempt }) => attempt).slice(1, 4)).toEqual([1, 2, 3])
    server.isUp = true
    await vi.advanceTimersByTimeAsync(10_000)
    expect(client.state).toBe('connected')
  })

  it('does not reset the wait after a connection that does not last', async () => {
    const { client, server, changes } = watched()
    const waits = () => changes.flatMap(({ retryInMs }) => retryInMs ?? [])
    await client.connect()
    for (const lifeMs of [100, 100, 6_000]) {
      await vi.advanceTimersByTimeAsync(lifeMs)
      server.drop()
      await settle()
      await vi.advanceTimersByTimeAsync(waits().at(-1) ?? 0)
    }
    expect(waits()).toEqual([250, 500, 250])
  })

  it('stays away as long as the server asks', async () => {
    const { client, server, changes } = watched()
    await client.connect()
    server.drop({ code: 4001, retryAfterMs: 30_000 })
    await settle()
    expect(changes.at(-1)).toMatchObject({ retryInMs: 30_250, code: 4001 })
    await vi.advanceTimersByTimeAsync(30_249)
    expect(server.connectionCount).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(server.connectionCount).toBe(1)
  })

  it('sends nothing between bye and the close', async () => {
    const { client, server } = watched()
    await client.connect()
    server.drop({ code: 4001 })
    await Promise.resolve()
    const result = client.publish('a', 1, { ack: 'none' })
    await vi.advanceTimersByTimeAsync(600)
    await result
    expect(server.received.filter(({ verb }) => verb === 'publish')).toHaveLength(1)
  })

  it.each([4500, 4999, 1002])('gives up at close code %i and rejects all waiting calls', async (code) => {
    const { client, server, changes } = watched()
    const iteration = iterate('a', { client })
    const { subscription } = iteration
    await subscription.ready
    server.ignore('publish')
    const publish = expect(client.publish('a', 1)).rejects.toBeInstanceOf(Error)
    const next = expect(iteration[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(Error)
    await settle()
    server.drop({ code })
    await settle()
    expect(changes.at(-1)).toMatchObject({ state: 'closed', code })
    await Promise.all([publish, next])
    expect(subscription.state).toBe('closed')
    const refused = client.listen('b', () => undefined)
    expect(refused.state).toBe('closed')
    await expect(refused.ready).rejects.toMatchObject({ code: 'E_CLOSED' })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('gives up after maxAttempts', async () => {
    const { client, server, states } = watched({ reconnect: { maxAttempts: 2, minMs: 100 } })
    server.isUp = false
    const connected = expect(client.connect()).rejects.toMatchObject({ code: 'E_CONNECT_FAILED' })
    await vi.advanceTimersByTimeAsync(1_000)
    await connected
    expect(states()).toEqual(['connecting', 'reconnecting', 'reconnecting', 'closed'])
  })

  it('gives up an attempt that takes too long', async () => {
    const { client, server, changes } = watched({ connectTimeoutMs: 2_000 })
    server.isSilent = true
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(changes.at(-1)).toMatchObject({
      state: 'reconnecting',
      code: 1006,
      error: expect.objectContaining({
        message: expect.stringContaining('could not connect: not within 2000 ms (connectTimeoutMs)'),
      }),
    })
    server.isSilent = false
    await vi.advanceTimersByTimeAsync(250)
    expect(client.state).toBe('connected')
    expect(server.connectionCount).toBe(1)
  })

  it('calls the url function before every attempt', async () => {
    const { server } = watched()
    const urls: string[] = []
    const { WebMQClient } = await import('../../index.js')
    const client = new WebMQClient({
      url: async () => `https://node-${urls.length}.test/ws`,
      random: () => 0,
      WebSocket: class extends server.WebSocket {
        constructor(url: string, protocols: string[]) {
          super(url, protocols)
          urls.push(url)
        }
      },
    })
    await client.connect()
    server.drop()
    await settle()
    await client.close()
    expect(urls).toEqual(['wss://node-0.test/ws', 'wss://node-1.test/ws'])
  })
})

describe('heartbeat', () => {
  it('pings when idle, and stays connected while pings are answered', async () => {
    const { client, server } = watched()
    await client.connect()
    await vi.advanceTimersByTimeAsync(100_000)
    expect(server.received.map(({ verb }) => verb)).toEqual(['ping', 'ping', 'ping', 'ping'])
    expect(client.state).toBe('connected')
  })

  it('reconnects when pings are no longer answered', async () => {
    const { client, server, changes } = watched({ heartbeatTimeoutMs: 4_000 })
    await client.connect()
    server.isSilent = true
    await vi.advanceTimersByTimeAsync(28_999)
    expect(client.state).toBe('connected')
    await vi.advanceTimersByTimeAsync(1)
    expect(changes.at(-1)).toMatchObject({ code: 4003, error: { code: 'E_HEARTBEAT_TIMEOUT' } })
    server.isSilent = false
    await vi.advanceTimersByTimeAsync(250)
    expect(client.state).toBe('connected')
  })

  it('finds out that the network is dead before a publish has failed, and sends it again', async () => {
    const { client, server } = watched()
    await client.connect()
    server.isSilent = true
    const published = client.publish('a', 1)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(client.state).toBe('connected')
    await vi.advanceTimersByTimeAsync(5_000)
    expect(client.state).toBe('reconnecting')
    expect(client.status).toMatchObject({ queueLength: 1, lastError: { code: 'E_HEARTBEAT_TIMEOUT' } })
    server.isSilent = false
    await vi.advanceTimersByTimeAsync(1_000)
    await expect(published).resolves.toMatchObject({ duplicate: false })
  })

  it('does not take a slow answer for a dead network', async () => {
    const { client, server } = watched()
    await client.connect()
    server.ignore('publish')
    const published = expect(client.publish('a', 1)).rejects.toMatchObject({ code: 'E_TIMEOUT' })
    await vi.advanceTimersByTimeAsync(10_000)
    await published
    expect(client.state).toBe('connected')
    expect(server.received.filter(({ verb }) => verb === 'ping')).toHaveLength(1)
  })

  it('pings also when it only sends, because it receives nothing', async () => {
    const { client, server } = watched()
    await client.connect()
    for (let second = 0; second < 60; second++) {
      await client.publish('a', second, { ack: 'none' })
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(server.received.filter(({ verb }) => verb === 'ping')).toHaveLength(2)
    expect(client.state).toBe('connected')
  })
})
