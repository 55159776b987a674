import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchedClient as watched } from '../../../test/watched-client.js'
import { createTestServer, type TestServer } from '../../dev/testing/index.js'
import type { ConnectedInfo, TokenCause } from '../../index.js'

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
    const infos: ConnectedInfo[] = []
    client.on('status', ({ connection }) => connection && infos.push(connection))
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
    expect(changes.at(-1)).toMatchObject({ state: 'closed', code: 4501 })
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
    await expect(client.connect()).rejects.toThrow('authenticate first: set the option `token`')
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

  // One failed call of token() ended the connection at the expiry, though there was time to try again.
  it('is called again, with growing pauses, until the expiry when it fails', async () => {
    const server = createTestServer({ verifyToken })
    let calls = 0
    const { client } = watched({
      server,
      token: ({ cause }) => {
        if (cause === 'expiring' && ++calls < 3) throw new Error('503')
        return `good-${cause}`
      },
    })
    const errors: unknown[] = []
    client.on('error', ({ error }) => errors.push((error as { code: string }).code))
    await client.connect()
    server.expireTokens(30_000)
    await settle()
    expect([calls, client.status.lastError?.code]).toEqual([1, 'E_TOKEN_UNAVAILABLE'])
    await vi.advanceTimersByTimeAsync(250 + 500)
    expect(calls).toBe(3)
    expect(tokensOf(server)).toEqual(['good-initial', 'good-expiring'])
    expect(errors).toEqual(['E_TOKEN_UNAVAILABLE', 'E_TOKEN_UNAVAILABLE'])
    expect(server.connectionCount).toBe(1)
  })

  it('is not called any more after the expiry, or on another connection', async () => {
    const server = createTestServer({ verifyToken })
    let calls = 0
    const { client } = watched({
      server,
      token: ({ cause }) => {
        if (cause === 'expiring') {
          calls++
          throw new Error('503')
        }
        return 'good'
      },
    })
    client.on('error', () => undefined)
    await client.connect()
    server.expireTokens(2_000)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(calls).toBe(4)
    server.expireTokens(30_000)
    await settle()
    server.drop()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(calls).toBe(5)
    await client.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each<TokenCause>(['initial', 'expiring'])(
    'closes the client quietly by close() when %s, until it is opened',
    async (when) => {
      const server = createTestServer({ verifyToken })
      let hasSession = when !== 'initial'
      const token = vi.fn(async () => {
        if (hasSession) return 'good'
        await client.close()
        throw new Error('401')
      })
      const { client } = watched({ server, token })
      const errors: unknown[] = []
      client.on('error', ({ error }) => errors.push(error))
      const heard: unknown[] = []
      client.listen('a', (payload) => heard.push(payload))
      await settle()
      hasSession = false
      server.expireTokens(30_000)
      await vi.advanceTimersByTimeAsync(60_000)
      expect([client.state, token.mock.calls.length, errors]).toEqual(['closed', when === 'initial' ? 1 : 2, []])
      hasSession = true
      await client.open()
      server.publish('a', 1)
      await settle()
      expect([heard, errors]).toEqual([[1], []])
    },
  )

  // An error page was sent as a token, for ever: `fetch` resolves for a status of 500 too.
  it.each<[string, unknown, string]>([
    ['a page', '<!DOCTYPE html><html>secret', 'token() gave a page, starting with "<!DOCTYPE html><"'],
    ['JSON', '{"token":"s3cret-s3cret"}', 'token() gave JSON, starting with "{\\"token\\""'],
    ['a text', 'Internal\tServer Error', 'text with a space or a newline, starting with "Internal\\tServer "'],
    ['a token with a newline', 's3cret-s3cret\n', 'token() gave text with a space or a newline; '],
    ['a JWT with its scheme', 'Bearer eyJhbGciOi', 'token() gave text with a space or a newline; '],
    ['a JWT in quotes', '"eyJhbGciOi"', 'token() gave JSON; '],
    ['an object', { token: 's3cret' }, 'token() gave an object, not a string: return its member `token`'],
    ['of OAuth', { access_token: 's3cret' }, 'token() gave an object, not a string: return its member `access_token`'],
    [
      'a response',
      new Response('s3cret'),
      'token() gave a Response, not a string: check `response.ok` and return `resp',
    ],
    ['an error', new Error('s3cret'), 'token() gave an Error, not a string'],
  ])('is refused at once when it is %s, and called once more only', async (_what, token, detail) => {
    vi.useRealTimers()
    const server = createTestServer({ verifyToken })
    const causes: TokenCause[] = []
    const errors: Error[] = []
    const { client } = watched({
      server,
      random: () => 0,
      token: ({ cause }) => {
        causes.push(cause)
        return token as string
      },
    })
    client.on('error', ({ error }) => errors.push(error as Error))
    await expect(client.connect()).rejects.toMatchObject({ code: 'E_TOKEN_INVALID' })
    expect(causes).toEqual(['initial', 'rejected'])
    expect(client.state).toBe('closed')
    expect(errors).toHaveLength(2)
    for (const { message } of errors) {
      expect(message).toContain(detail)
      expect(message).not.toMatch(/s3cret|eyJ/)
    }
    expect(server.received).toEqual([])
  })

  // A function without `return` was told to set the option that it was, and the client was closed for good.
  it.each([undefined, ''])('is asked for again, with the reason, when it is %j', async (nothing) => {
    const server = createTestServer({ verifyToken })
    const token = vi.fn(() => 'good').mockReturnValueOnce(nothing as string)
    const { client, changes } = watched({ server, token })
    const errors: unknown[] = []
    client.on('error', ({ error }) => errors.push(error))
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(600)
    const message = expect.stringMatching(
      /token\(\) gave (undefined|an empty text): return the token, or null for an anon/,
    )
    expect(errors).toEqual([expect.objectContaining({ code: 'E_TOKEN_UNAVAILABLE', message })])
    expect(changes.map(({ state }) => state)).toEqual(['connecting', 'reconnecting', 'connected'])
    expect(tokensOf(server)).toEqual(['good'])
  })

  it('ends the client when it is an empty text, not a function', async () => {
    const { client } = watched({ server: createTestServer({ verifyToken }), token: '' })
    client.on('error', () => undefined)
    await expect(client.connect()).rejects.toMatchObject({ code: 'E_TOKEN_INVALID' })
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

describe('refreshToken', () => {
  const verifyToken = (token: string) => (token.startsWith('good') ? { userId: 'ann' } : undefined)

  it('sends a new token on the same connection, and resolves when the server has accepted it', async () => {
    const server = createTestServer({ verifyToken })
    let count = 0
    const { client } = watched({ server, token: ({ cause }) => `good-${cause}-${++count}` })
    await client.connect()
    await Promise.all([client.refreshToken(), client.refreshToken()])
    await client.refreshToken()
    expect(tokensOf(server)).toEqual(['good-initial-1', 'good-expiring-2', 'good-expiring-3'])
    expect(server.connectionCount).toBe(1)
  })

  it('rejects when token() fails, and the connection keeps its token', async () => {
    const server = createTestServer({ verifyToken })
    const { client } = watched({
      server,
      token: ({ cause }) => (cause === 'initial' ? 'good' : Promise.reject(new Error('401'))),
    })
    await client.connect()
    await expect(client.refreshToken()).rejects.toMatchObject({ code: 'E_TOKEN_UNAVAILABLE', cause: new Error('401') })
    expect(client.state).toBe('connected')
    server.refuse('auth', 'E_BROKER_UNAVAILABLE')
    await client.close()
    await expect(client.refreshToken()).rejects.toMatchObject({ code: 'E_CLOSED' })
  })

  it('resolves with the next connection when this one is lost, or there is none', async () => {
    const server = createTestServer({ verifyToken })
    const { client } = watched({ server, token: () => 'good' })
    await client.refreshToken()
    server.ignore('auth')
    const renewed = client.refreshToken()
    await settle()
    server.drop()
    await vi.advanceTimersByTimeAsync(600)
    await renewed
    expect(tokensOf(server)).toEqual(['good', 'good', 'good'])
    server.ignore('auth')
    const left = expect(client.refreshToken()).rejects.toMatchObject({ code: 'E_CLOSED' })
    await client.close()
    await left
  })

  it('rejects with the answer of the server', async () => {
    const server = createTestServer({ verifyToken })
    const { client } = watched({ server, token: () => 'good' })
    await client.connect()
    server.refuse('auth', 'E_BROKER_UNAVAILABLE')
    await expect(client.refreshToken()).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    expect(client.state).toBe('connected')
  })
})
