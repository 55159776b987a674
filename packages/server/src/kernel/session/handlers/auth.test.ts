import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../../test/fake-server.js'
import { FakeVerifier } from '../../../../test/fake-verifier.js'
import type { ServerOptions } from '../../../doors/options/server-options.js'
import type { Grant } from '../../identity/index.js'

const ALL: readonly Grant[] = [{ keys: ['#'], allow: ['listen', 'publish'] }]
const CHAT: readonly Grant[] = [{ keys: ['chat.#'], allow: ['listen'] }]
const NOW_MS = 1_000_000

const verifier = () =>
  new FakeVerifier({
    ann: { userId: 'ann', grants: ALL },
    'ann-chat': { userId: 'ann', grants: CHAT },
    'ann-100s': { userId: 'ann', grants: ALL, expiresAtMs: NOW_MS + 100_000 },
    'ann-1h': { userId: 'ann', grants: ALL, expiresAtMs: NOW_MS + 3_600_000 },
    bob: { userId: 'bob', grants: ALL },
    nobody: { grants: CHAT },
  })

async function start(options: ServerOptions = {}) {
  const tokens = verifier()
  const fake = await FakeServer.start(options, { verifier: tokens })
  const auth = async (client: FakeClient, token: string, id = 'a') => {
    client.send({ verb: 'auth', id, token })
    await fake.settled()
  }
  return { fake, tokens, auth }
}

const offering = (token: string) => ({ subprotocols: ['webmq.v1', `webmq.bearer.${token}`] })

beforeEach(() => {
  vi.useFakeTimers({ now: NOW_MS, toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('a token with the upgrade', () => {
  it.each([
    ['subprotocol', offering('ann-100s')],
    ['header', { headers: { authorization: 'Bearer ann-100s' } }],
  ])('is accepted from the %s and named in welcome', async (_where, upgrade) => {
    const { fake } = await start()
    const client = await fake.connect(upgrade)
    expect(client.messages).toEqual([expect.objectContaining({ verb: 'welcome', auth: 'done', expiresInMs: 100_000 })])
    expect(client.subprotocol).toBe('webmq.v1')
  })

  it.each([
    ['not valid', 'nonsense', 'E_TOKEN_INVALID', 4501],
    ['expired', 'expired', 'E_TOKEN_EXPIRED', 4009],
    ['signed with keys that cannot be fetched now', 'keys-unreachable', 'E_INTERNAL', 4011],
  ])('is refused where browsers can see it when it is %s', async (_what, token, code, closeCode) => {
    const { fake } = await start()
    const client = await fake.connect(offering(token))
    expect(client.messages).toMatchObject([
      { verb: 'error', code },
      { verb: 'bye', code: closeCode },
    ])
    expect(client.closure?.code).toBe(closeCode)
    expect(client.received('error')[0]?.message).not.toContain('keys.internal')
  })

  it('is not looked at by a server that takes everyone', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect(offering('nonsense'))
    expect(client.messages).toMatchObject([{ verb: 'welcome', auth: 'none' }])
  })
})

describe('auth', () => {
  it('opens a session that may do nothing before', async () => {
    const { fake, auth } = await start()
    const client = await fake.connect()
    expect(client.messages).toMatchObject([{ verb: 'welcome', auth: 'required' }])
    client.clear()
    client.send({ verb: 'ping' })
    client.send({ verb: 'listen', id: '1', pattern: '#' })
    client.send({ verb: 'publish', id: '2', key: 'k', echo: true, payload: '1' })
    client.send({ verb: 'history', id: '3', key: 'k' })
    await fake.settled()
    expect(client.messages).toMatchObject([
      { verb: 'pong' },
      ...['1', '2', '3'].map((id) => ({ verb: 'error', id, code: 'E_UNAUTHENTICATED' })),
    ])
    client.clear()
    await auth(client, 'ann-100s')
    client.send({ verb: 'publish', id: '4', key: 'k', echo: true, payload: '1' })
    await fake.settled()
    expect(client.messages).toMatchObject([
      { verb: 'ok', id: 'a', result: { userId: 'ann', expiresInMs: 100_000 } },
      { verb: 'ok', id: '4' },
    ])
  })

  it('may be followed by other messages without waiting for its answer', async () => {
    const { fake, tokens } = await start()
    tokens.isSlow = true
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'auth', id: 'a', token: 'ann' })
    client.send({ verb: 'listen', id: 'l', pattern: 'k' })
    client.send({ verb: 'publish', id: 'p', key: 'k', echo: true, payload: '1' })
    await fake.settled()
    expect(client.messages).toEqual([])
    tokens.release()
    await fake.settled()
    expect(client.messages.map((message) => ('id' in message ? message.id : message.verb))).toEqual([
      'a',
      'l',
      'message',
      'p',
    ])
  })

  it('keeps little for a stranger whose token is still being verified', async () => {
    const { fake, tokens } = await start()
    tokens.isSlow = true
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'auth', id: 'a', token: 'ann' })
    for (const id of ['1', '2']) client.send({ verb: 'publish', id, key: 'k', echo: true, payload: 'x'.repeat(40_000) })
    await fake.settled()
    expect(client.messages).toMatchObject([{ verb: 'error', id: '2', code: 'E_UNAUTHENTICATED' }])
    tokens.release()
    await fake.settled()
    expect(client.received('ok').map(({ id }) => id)).toEqual(['a', '1'])
  })

  it.each([
    ['not valid', 'nonsense', 'E_TOKEN_INVALID', 4501],
    ['expired', 'expired', 'E_TOKEN_EXPIRED', 4009],
  ])('ends the session when the token is %s', async (_what, token, code, closeCode) => {
    const { fake, auth } = await start()
    const client = await fake.connect()
    client.clear()
    await auth(client, token)
    expect(client.messages).toMatchObject([
      { verb: 'error', id: 'a', code },
      { verb: 'bye', code: closeCode },
    ])
    expect(client.closure?.code).toBe(closeCode)
    expect(fake.server.stats().connectionCount).toBe(0)
  })

  it('is answered by a server that takes everyone', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'auth', id: 'a', token: 'any' })
    await fake.settled()
    expect(client.messages).toEqual([{ verb: 'ok', id: 'a', result: {} }])
  })

  it('must come in time', async () => {
    const { fake } = await start({ authTimeoutMs: 5_000 })
    const client = await fake.connect()
    client.clear()
    vi.advanceTimersByTime(4_999)
    expect(client.messages).toEqual([])
    vi.advanceTimersByTime(51)
    expect(client.messages).toEqual([{ verb: 'bye', code: 4002 }])
    expect(client.closure?.code).toBe(4002)
  })

  // Symptom: a clock that was set forward ended all who had not sent theirs yet; set back, nobody.
  it.each([3_600_000, -3_600_000])('must come in time, also when a clock is set by %i ms', async (stepMs) => {
    const { fake } = await start({ authTimeoutMs: 5_000 })
    const first = await fake.connect()
    vi.advanceTimersByTime(1_000)
    vi.setSystemTime(Date.now() + stepMs)
    const second = await fake.connect()
    vi.advanceTimersByTime(3_900)
    expect([first.closure, second.closure]).toEqual([undefined, undefined])
    vi.advanceTimersByTime(1_200)
    expect([first.closure?.code, second.closure?.code]).toEqual([4002, 4002])
  })

  it('in time stops the clock', async () => {
    const { fake, auth } = await start({ authTimeoutMs: 5_000 })
    const client = await fake.connect()
    await auth(client, 'ann')
    vi.advanceTimersByTime(60_000)
    expect(client.closure).toBeUndefined()
  })

  it('holds a session to its grants: a listen must be contained, and publishing granted', async () => {
    const { fake, auth } = await start()
    const client = await fake.connect()
    await auth(client, 'nobody')
    client.clear()
    for (const pattern of ['chat.*', 'chat.1.#', '*.chat', '#']) client.send({ verb: 'listen', id: '1', pattern })
    client.send({ verb: 'publish', id: '2', key: 'chat.1', echo: true, payload: '1' })
    client.send({ verb: 'history', id: '3', key: 'chat.1' })
    client.send({ verb: 'history', id: '4', key: 'other' })
    await fake.settled()
    expect(client.messages.map((message) => (message.verb === 'error' ? message.code : message.verb))).toEqual([
      'ok',
      'ok',
      'E_FORBIDDEN',
      'E_FORBIDDEN',
      'E_FORBIDDEN',
      'ok',
      'E_FORBIDDEN',
    ])
  })
})

describe('a token that runs out', () => {
  it.each([
    ['20 % of its life', 'ann-100s', 100_000, 20_000],
    ['30 seconds', 'ann-1h', 3_600_000, 30_000],
  ])('is announced %s before, and ends the session', async (_what, token, lifeMs, warningMs) => {
    const { fake } = await start()
    const client = await fake.connect(offering(token))
    client.clear()
    vi.advanceTimersByTime(lifeMs - warningMs - 1)
    expect(client.messages).toEqual([])
    vi.advanceTimersByTime(51)
    const [expiring] = client.received('expiring')
    expect(expiring?.inMs).toBeGreaterThan(warningMs - 60)
    vi.advanceTimersByTime(warningMs)
    expect(client.messages.slice(1)).toEqual([{ verb: 'bye', code: 4009 }])
    expect(client.closure?.code).toBe(4009)
  })

  it('is replaced in band, without a break', async () => {
    const { fake, auth } = await start()
    const client = await fake.connect(offering('ann-100s'))
    client.send({ verb: 'listen', id: 'l', pattern: 'k' })
    await auth(client, 'ann-1h')
    vi.advanceTimersByTime(200_000)
    expect(client.received('expiring')).toEqual([])
    await fake.server.publish('k', 1)
    expect(client.received('message')).toHaveLength(1)
  })

  it('is not replaced by the token of another user', async () => {
    const { fake, auth } = await start()
    const client = await fake.connect(offering('ann-100s'))
    client.clear()
    await auth(client, 'bob')
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'a', code: 'E_FORBIDDEN' }])
    expect(client.closure).toBeUndefined()
    vi.advanceTimersByTime(101_000)
    expect(client.closure?.code).toBe(4009)
  })

  it('ends the listens that the new token does not grant, by name, and no others', async () => {
    const { fake, auth } = await start()
    const client = await fake.connect(offering('ann'))
    for (const pattern of ['chat.1', 'orders.#']) client.send({ verb: 'listen', id: 'l', pattern })
    await fake.settled()
    client.clear()
    await auth(client, 'ann-chat')
    expect(client.messages).toMatchObject([
      { verb: 'ok', id: 'a' },
      { verb: 'error', code: 'E_FORBIDDEN', pattern: 'orders.#' },
    ])
    expect(client.received('error')[0]?.message).toContain('orders.#')
    client.clear()
    for (const key of ['orders.1', 'chat.1']) await fake.server.publish(key, 1)
    expect(client.received('message').map(({ key }) => key)).toEqual(['chat.1'])
  })

  it('stays in force while the keys for the next one cannot be fetched', async () => {
    const { fake, auth } = await start()
    const client = await fake.connect(offering('ann-100s'))
    client.clear()
    await auth(client, 'keys-unreachable')
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'a', code: 'E_INTERNAL', message: 'internal error' }])
    expect(client.closure).toBeUndefined()
  })

  it('goes on with its token when a new one could not be verified in time', async () => {
    const { fake, auth } = await start()
    const client = await fake.connect(offering('ann-100s'))
    client.clear()
    await auth(client, 'too-many')
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'a', code: 'E_RATE_LIMIT', retryable: true }])
    expect(client.closure).toBeUndefined()
  })
})
