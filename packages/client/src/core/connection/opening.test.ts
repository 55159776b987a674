import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchedClient as watched } from '../../../test/watched-client.js'
import { createTestServer } from '../../dev/testing/index.js'
import { iterate } from '../../parts/iterate/index.js'
import { loaded } from '../../parts/load/index.js'
import { presence } from '../../parts/presence/index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

/** Two bad tokens closed a client for ever: the next `listen` threw, inside a render. */
describe('open', () => {
  it('takes up the subscriptions after a token was refused twice', async () => {
    let token = 'bad'
    const server = createTestServer({ verifyToken: (given) => (given === 'good' ? { userId: 'ann' } : undefined) })
    const { client } = watched({ server, token: () => token })
    const errors: string[] = []
    client.on('error', ({ error }) => errors.push((error as Error).message))
    const handled: unknown[] = []
    const early = client.listen('a', (payload) => handled.push(payload))
    const refused = expect(early.ready).rejects.toMatchObject({ code: 'E_TOKEN_INVALID' })
    await vi.advanceTimersByTimeAsync(5_000)
    await refused
    const late = client.listen('b', (payload) => handled.push(payload))
    const told: unknown[] = []
    late.on('error', (error) => told.push(error))
    await settle()
    expect([client.state, early.state, late.state]).toEqual(['closed', 'closed', 'closed'])
    const reason = 'client is closed: 4501 E_TOKEN_INVALID, token is not valid; open() opens it again'
    expect(errors.map((text) => `${text}`.replaceAll(/ \(https:[^)]*\)/g, ''))).toEqual(['token is not valid', reason])
    expect(told).toEqual([expect.objectContaining({ code: 'E_CLOSED' })])
    await expect(client.publish('a', 1)).rejects.toThrow('client is closed: 4501 E_TOKEN_INVALID, token is not valid')

    token = 'good'
    await client.open()
    await Promise.all([early.ready, late.ready])
    server.publish('a', 1)
    server.publish('b', 2)
    await settle()
    expect(handled).toEqual([1, 2])
  })

  it('continues from where a subscription stopped, and leaves out what the app has ended', async () => {
    const { client, server } = watched()
    const handled: unknown[] = []
    const loads: string[] = []
    const kept = client.listen(
      'a',
      loaded(
        (payload) => handled.push(payload),
        ({ cause }) => void loads.push(cause),
      ),
    )
    const ended = client.listen('a', () => handled.push('ended'))
    const controller = new AbortController()
    const aborted = client.listen('a', () => handled.push('aborted'), { signal: controller.signal })
    const loop = iterate('a', { client })
    await Promise.all([kept.ready, ended.ready, aborted.ready])
    await client.close()
    await settle()
    expect(kept.state).toBe('closed')
    await ended.close()
    controller.abort()
    server.publish('a', 1)
    await client.open()
    expect(await kept.ready).toMatchObject({ recovered: true, replayed: 1 })
    await settle()
    expect(handled).toEqual([1])
    expect(loads).toEqual(['initial'])
    expect([ended.state, aborted.state, loop.subscription.state]).toEqual(['closed', 'closed', 'closed'])
    await client.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('loads again what was being loaded', async () => {
    const { client } = watched()
    const load = vi.fn<() => Promise<void>>(() => new Promise(() => undefined))
    await client.listen(
      'a',
      loaded(() => undefined, load),
    ).ready
    await settle()
    await client.close()
    await client.open()
    await settle()
    expect(load).toHaveBeenCalledTimes(2)
  })

  it('may be called by a handler of the state, and while the client closes', async () => {
    const { client, server } = watched()
    const off = client.on('status', ({ state }) => state === 'closed' && client.open())
    const subscription = client.listen('a', () => undefined)
    await subscription.ready
    server.drop({ code: 4500 })
    await vi.advanceTimersByTimeAsync(600)
    expect([client.state, subscription.state]).toEqual(['connected', 'active'])
    off()
    server.ignore('publish')
    const published = client.publish('a', 1)
    const closed = client.close()
    await client.open()
    server.drop()
    await vi.advanceTimersByTimeAsync(2_000)
    await Promise.all([closed, published])
    expect(client.state).toBe('connected')
  })

  it('sends no publish that was rejected', async () => {
    const { client, server } = watched()
    server.isUp = false
    const rejected = expect(client.publish('a', 1)).rejects.toMatchObject({ code: 'E_CLOSED' })
    await client.close({ flushMs: 0 })
    await rejected
    server.isUp = true
    await client.open()
    await settle()
    expect(server.received).toEqual([])
  })

  it('is present again', async () => {
    const { client, server } = watched()
    const room = presence('room', { client })
    await room.enter({ name: 'Ada' })
    await client.close()
    await expect(presence('room', { client }).get()).rejects.toMatchObject({ code: 'E_CLOSED' })
    await client.open()
    await settle()
    expect(server.presence.members('room')).toMatchObject([{ data: { name: 'Ada' } }])
  })

  it('lets presence be used at a closed client', async () => {
    const { client, server } = watched()
    await client.close()
    const room = presence('room', { client })
    await expect(room.enter()).rejects.toMatchObject({ code: 'E_CLOSED' })
    await client.open()
    await settle()
    expect(server.presence.members('room')).toHaveLength(1)
  })
})

describe('status', () => {
  it('is frozen, changes with the client, and is the same object until then', async () => {
    const { client, server } = watched({ lostAfterMs: 1_000 })
    expect(client.status).toEqual({ state: 'idle', lost: false, queueLength: 0 })
    expect(client.status).toBe(client.status)
    await client.connect()
    const { status } = client
    expect(status).toMatchObject({ state: 'connected', limits: { maxListensPerConnection: 128 } })
    expect([Object.isFrozen(status), Object.isFrozen(status.limits)]).toEqual([true, true])
    server.isUp = false
    server.drop({ code: 4001 })
    await settle()
    expect(status.state).toBe('connected')
    const published = client.publish('a', 1)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(client.status).toMatchObject({
      state: 'reconnecting',
      attempt: 3,
      lost: true,
      queueLength: 1,
      lastError: { code: 'E_CONNECT_FAILED', message: expect.stringContaining('could not connect: closed (1006)') },
    })
    expect(client.status).toBe(client.status)
    server.isUp = true
    await vi.advanceTimersByTimeAsync(5_000)
    await published
    expect(client.status).toMatchObject({ state: 'connected', lost: false, queueLength: 0, lastError: undefined })
  })
})
