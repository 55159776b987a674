import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ClientEvents, StateChange, TokenCause } from './index.js'
import { createTestClient, createTestServer, type TestClientOptions, type TestServer } from './testing/index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

function watched(options: TestClientOptions = {}) {
  const { client, server } = createTestClient({ random: () => 0.5, ...options })
  const changes: StateChange[] = []
  client.on('state', (change) => changes.push(change))
  return { client, server, changes, states: () => changes.map(({ state }) => state) }
}

/** Number of tokens, or whatever, that were sent by a verb. */
function tokensOf(server: TestServer): string[] {
  return server.received.flatMap((message) => (message.verb === 'auth' ? [message.token] : []))
}

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

  it('tells every change, with the reason and the time of the next attempt', async () => {
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

  it('says lost only when it lasts, and restored only after lost', async () => {
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

  it('stops calling a handler that was taken off', async () => {
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

describe('reconnecting', () => {
  it('waits longer after each failure, up to a bound, and never gives up', async () => {
    const { server, changes, client } = watched()
    server.isUp = false
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(120_000)
    const waits = changes.flatMap(({ retryInMs }) => retryInMs ?? [])
    expect(waits.slice(0, 9)).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000])
    expect(changes.map(({ attempt }) => attempt).slice(1, 4)).toEqual([1, 2, 3])
    server.isUp = true
    await vi.advanceTimersByTimeAsync(10_000)
    expect(client.state).toBe('connected')
  })

  it('does not begin anew with a connection that does not last', async () => {
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

  it.each([4500, 4999, 1002])('gives up at close code %i and tells everybody who waits', async (code) => {
    const { client, server, changes } = watched()
    const subscription = client.listen('a')
    await subscription.ready
    server.ignore('publish')
    const publish = expect(client.publish('a', 1)).rejects.toBeInstanceOf(Error)
    const next = expect(subscription[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(Error)
    await settle()
    server.drop({ code })
    await settle()
    expect(changes.at(-1)).toMatchObject({ state: 'closed', terminal: true, code })
    await Promise.all([publish, next])
    expect(subscription.state).toBe('closed')
    expect(() => client.listen('b', () => undefined)).toThrow(expect.objectContaining({ code: 'E_CLOSED' }))
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

  it('gives an attempt up that takes too long', async () => {
    const { client, server, changes } = watched({ connectTimeoutMs: 2_000 })
    server.isSilent = true
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(changes.at(-1)).toMatchObject({
      state: 'reconnecting',
      code: 1006,
      reason: 'could not connect: not within 2000 ms',
    })
    server.isSilent = false
    await vi.advanceTimersByTimeAsync(250)
    expect(client.state).toBe('connected')
    expect(server.connectionCount).toBe(1)
  })

  it('asks for the url before every attempt when it is a function', async () => {
    const { server } = watched()
    const urls: string[] = []
    const { WebMQClient } = await import('./index.js')
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
  it('pings when quiet, and stays connected as long as it is answered', async () => {
    const { client, server } = watched()
    await client.connect()
    await vi.advanceTimersByTimeAsync(100_000)
    expect(server.received.map(({ verb }) => verb)).toEqual(['ping', 'ping', 'ping', 'ping'])
    expect(client.state).toBe('connected')
  })

  it('reconnects when nobody answers any more', async () => {
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

  it('pings also when it only ever sends, for then it hears nothing', async () => {
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

describe('token', () => {
  const verifyToken = (token: string) => (token.startsWith('good') ? { userId: token } : undefined)

  it('sends a string first of all, and tells whose it is', async () => {
    const { client, server } = watched({ server: createTestServer({ verifyToken }), token: 'good' })
    const infos: ClientEvents['connected'][] = []
    client.on('connected', (info) => infos.push(info))
    await client.publish('a', 1)
    expect(server.received.map(({ verb }) => verb)).toEqual(['auth', 'publish'])
    expect(infos).toEqual([{ session: 'session-1', node: 'test', version: '0.0.0', userId: 'good' }])
  })

  it('is asked before every connection when it is a function', async () => {
    const server = createTestServer({ verifyToken })
    let count = 0
    const causes: TokenCause[] = []
    const { client } = watched({
      server,
      token: async ({ cause }) => {
        causes.push(cause)
        return `good-${++count}`
      },
    })
    await client.connect()
    server.drop()
    await vi.advanceTimersByTimeAsync(600)
    expect(tokensOf(server)).toEqual(['good-1', 'good-2'])
    expect(causes).toEqual(['initial', 'initial'])
  })

  it('is asked again before it expires, and presented on the same connection', async () => {
    const server = createTestServer({ verifyToken })
    const token = vi.fn(({ cause }: { cause: TokenCause }) => `good-${cause}`)
    const { client } = watched({ server, token })
    await client.connect()
    server.expireTokens(30_000)
    await settle()
    expect(tokensOf(server)).toEqual(['good-initial', 'good-expiring'])
    expect(server.connectionCount).toBe(1)
    expect(client.state).toBe('connected')
  })

  it('is asked with cause expiring when it ran out before it was renewed', async () => {
    const server = createTestServer({ verifyToken })
    const { client } = watched({ server, token: ({ cause }) => `good-${cause}` })
    await client.connect()
    server.drop({ code: 4009 })
    await vi.advanceTimersByTimeAsync(600)
    expect(tokensOf(server)).toEqual(['good-initial', 'good-expiring'])
  })

  it('is asked once more when it was rejected', async () => {
    const server = createTestServer({ verifyToken })
    const { client } = watched({ server, token: ({ cause }) => (cause === 'rejected' ? 'good' : 'stale') })
    const published = client.publish('a', 1)
    await vi.advanceTimersByTimeAsync(600)
    expect(tokensOf(server)).toEqual(['stale', 'good'])
    expect(await published).toMatchObject({ duplicate: false })
    expect(client.state).toBe('connected')
  })

  it('ends the client when it is rejected twice, even with failures in between', async () => {
    const server = createTestServer({ verifyToken })
    const { client, changes } = watched({ server, token: () => 'bad' })
    const connected = expect(client.connect()).rejects.toMatchObject({ code: 'E_TOKEN_INVALID' })
    await settle()
    server.isUp = false
    await vi.advanceTimersByTimeAsync(400)
    server.isUp = true
    await vi.advanceTimersByTimeAsync(10_000)
    await connected
    expect(changes.at(-1)).toMatchObject({ state: 'closed', terminal: true, code: 4501 })
    expect(tokensOf(server)).toEqual(['bad', 'bad'])
  })

  it.each([
    ['is rejected', 'bad', undefined],
    ['has expired', 'good', 4009],
  ])('ends the client when a fixed one %s', async (_what, token, code) => {
    const server = createTestServer({ verifyToken })
    const { client } = watched({ server, token })
    client.connect().catch(() => undefined)
    await settle()
    if (code !== undefined) server.drop({ code })
    await vi.advanceTimersByTimeAsync(600)
    expect(client.state).toBe('closed')
    expect(tokensOf(server)).toEqual([token])
  })

  it('ends the client with a clear error when one is needed and there is none', async () => {
    const { client } = watched({ server: createTestServer({ verifyToken }) })
    await expect(client.connect()).rejects.toThrow(
      'authenticate first: the server wants a token: set the option `token`',
    )
    expect(client.state).toBe('closed')
  })

  it('is harmless at a server that needs none', async () => {
    const { client, server } = watched({ token: 'anything' })
    server.refuse('auth', 'E_UNSUPPORTED')
    await client.connect()
    expect(client.state).toBe('connected')
  })

  it('that cannot be had is reported, and asked for again', async () => {
    const server = createTestServer({ verifyToken })
    const token = vi.fn(() => Promise.resolve('good')).mockRejectedValueOnce(new Error('401'))
    const { client } = watched({ server, token })
    const errors: unknown[] = []
    client.on('error', ({ error }) => errors.push(error))
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(600)
    expect(errors).toEqual([expect.objectContaining({ code: 'E_TOKEN_UNAVAILABLE', cause: new Error('401') })])
    expect(client.state).toBe('connected')
  })

  it('that never comes does not hold the client up, and its signal says so', async () => {
    const server = createTestServer({ verifyToken })
    const signals: AbortSignal[] = []
    const { client } = watched({
      server,
      connectTimeoutMs: 1_000,
      token: ({ signal }) => {
        signals.push(signal)
        return signals.length === 1 ? new Promise(() => undefined) : 'good'
      },
    })
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(1_300)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    expect(client.state).toBe('connected')
  })

  it('may be null to be nobody', async () => {
    const { client, server } = watched({ token: () => null })
    await client.connect()
    expect(tokensOf(server)).toEqual([])
  })

  it('of another user makes another connection', async () => {
    const server = createTestServer({ verifyToken })
    const { client, changes } = watched({ server, token: () => 'good' })
    await client.connect()
    server.refuse('auth', 'E_FORBIDDEN')
    server.expireTokens(1_000)
    await vi.advanceTimersByTimeAsync(600)
    expect(changes.map(({ state }) => state)).toEqual(['connecting', 'connected', 'reconnecting', 'connected'])
  })
})

describe('close', () => {
  it('waits for acknowledgements, then leaves nothing behind', async () => {
    const { client, server } = watched()
    const subscription = client.listen('a', () => undefined)
    const result = client.publish('a', 1)
    const closed = client.close()
    expect(() => client.listen('b', () => undefined)).toThrow(expect.objectContaining({ code: 'E_CLOSED' }))
    await expect(client.publish('a', 2)).rejects.toMatchObject({ code: 'E_CLOSED' })
    await closed
    expect(await result).toMatchObject({ duplicate: false })
    await settle()
    expect(subscription.state).toBe('closed')
    expect(server.connectionCount).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('does not wait for answers to listens, and tries them no more', async () => {
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

  it('rejects what is not acknowledged in time', async () => {
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

  it('is quick when nothing waits, also before the first use, and may be repeated', async () => {
    const { client, states } = watched()
    await Promise.all([client.close(), client.close()])
    await client[Symbol.asyncDispose]()
    expect(states()).toEqual(['closed'])
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('in a page', () => {
  function stubPage() {
    const page = Object.assign(new EventTarget(), { visibilityState: 'visible' })
    const navigator = { onLine: true }
    const window = new EventTarget()
    vi.stubGlobal('document', page)
    vi.stubGlobal('navigator', navigator)
    vi.stubGlobal('addEventListener', window.addEventListener.bind(window))
    vi.stubGlobal('removeEventListener', window.removeEventListener.bind(window))
    return { page, navigator, window }
  }

  it('does not wait for the next attempt when the network is back', async () => {
    const { window } = stubPage()
    const { client, server } = watched()
    server.isUp = false
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(60_000)
    server.isUp = true
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(250)
    expect(client.state).toBe('connected')
  })

  it('still stays away as long as the server asks', async () => {
    const { window } = stubPage()
    const { client, server } = watched()
    await client.connect()
    server.drop({ code: 4001, retryAfterMs: 30_000 })
    await settle()
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(29_999)
    expect(server.connectionCount).toBe(0)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(server.connectionCount).toBe(1)
  })

  it.each(['visibilitychange', 'resume'])(
    'finds out quickly on %s whether the connection has survived',
    async (event) => {
      const { page } = stubPage()
      const { client, server, changes } = watched()
      await client.connect()
      page.dispatchEvent(new Event(event))
      await vi.advanceTimersByTimeAsync(3_000)
      expect(server.received.map(({ verb }) => verb)).toEqual(['ping'])
      expect(client.state).toBe('connected')
      server.isSilent = true
      page.dispatchEvent(new Event(event))
      await vi.advanceTimersByTimeAsync(2_000)
      expect(changes.at(-1)).toMatchObject({ state: 'reconnecting', code: 4003 })
    },
  )

  it('does not ask when the page is being hidden', async () => {
    const { page } = stubPage()
    const { client, server } = watched()
    await client.connect()
    page.visibilityState = 'hidden'
    page.dispatchEvent(new Event('visibilitychange'))
    await settle()
    expect(server.received).toEqual([])
  })

  it('takes the connection of a page from the back/forward cache for lost', async () => {
    const { window } = stubPage()
    const { client, server, states } = watched()
    await client.connect()
    window.dispatchEvent(new Event('pageshow'))
    await settle()
    expect(client.state).toBe('connected')
    window.dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }))
    await vi.advanceTimersByTimeAsync(250)
    expect(states()).toEqual(['connecting', 'connected', 'reconnecting', 'connected'])
    expect(server.connectionCount).toBe(1)
  })

  it('makes no attempt while the page is hidden and offline', async () => {
    const { page, navigator, window } = stubPage()
    const { client, server } = watched()
    await client.connect()
    page.visibilityState = 'hidden'
    navigator.onLine = false
    server.drop()
    await vi.advanceTimersByTimeAsync(600_000)
    expect(client.state).toBe('reconnecting')
    navigator.onLine = true
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(250)
    expect(client.state).toBe('connected')
  })

  it('listens to the page no more after close', async () => {
    const { page, window } = stubPage()
    const looked = vi.fn(() => 'visible')
    Object.defineProperty(page, 'visibilityState', { get: looked })
    const { client } = watched()
    await client.connect()
    await client.close()
    looked.mockClear()
    page.dispatchEvent(new Event('visibilitychange'))
    window.dispatchEvent(new Event('online'))
    expect(looked).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })
})
