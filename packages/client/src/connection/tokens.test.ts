import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchedClient as watched } from '../../test/watched-client.js'
import type { ClientEvents, TokenCause } from '../index.js'
import { createTestServer, type TestServer } from '../testing/index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

/** Tokens that a server has received. */
function tokensOf(server: TestServer): string[] {
  return server.received.flatMap((message) => (message.verb === 'auth' ? [message.token] : []))
}

describe('token', () => {
  const verifyToken = (token: string) => (token.startsWith('good') ? { userId: token } : undefined)

  it('sends a string as the first message, and reports its user', async () => {
    const { client, server } = watched({ server: createTestServer({ verifyToken }), token: 'good' })
    const infos: ClientEvents['connected'][] = []
    client.on('connected', (info) => infos.push(info))
    await client.publish('a', 1)
    expect(server.received.map(({ verb }) => verb)).toEqual(['auth', 'publish'])
    expect(infos).toEqual([{ session: 'session-1', node: 'test', version: '0.0.0', userId: 'good' }])
  })

  it('is called before every connection when it is a function', async () => {
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

  it('is called again before the token expires, and sent on the same connection', async () => {
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

  it('is called with cause expiring when the token expired before it was renewed', async () => {
    const server = createTestServer({ verifyToken })
    const { client } = watched({ server, token: ({ cause }) => `good-${cause}` })
    await client.connect()
    server.drop({ code: 4009 })
    await vi.advanceTimersByTimeAsync(600)
    expect(tokensOf(server)).toEqual(['good-initial', 'good-expiring'])
  })

  it('is called once more when the token was rejected', async () => {
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

  it('is called again after a failure, which is reported', async () => {
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

  it('does not block the client when it never resolves, and its signal is aborted', async () => {
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

  it('may be null for an anonymous connection', async () => {
    const { client, server } = watched({ token: () => null })
    await client.connect()
    expect(tokensOf(server)).toEqual([])
  })

  it('opens a new connection for a token of another user', async () => {
    const server = createTestServer({ verifyToken })
    const { client, changes } = watched({ server, token: () => 'good' })
    await client.connect()
    server.refuse('auth', 'E_FORBIDDEN')
    server.expireTokens(1_000)
    await vi.advanceTimersByTimeAsync(600)
    expect(changes.map(({ state }) => state)).toEqual(['connecting', 'connected', 'reconnecting', 'connected'])
  })
})
