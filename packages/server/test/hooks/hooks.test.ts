import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { signedToken, TOKEN_SECRET } from '../../../../test/signed-token.js'
import type { Hooks } from '../../src/index.js'
import { deferred } from '../../src/kernel/base/deferred.js'
import type { ProtocolClient } from '../protocol-client.js'
import { Serving } from './serving.js'

const uncaught: unknown[] = []
const note = (error: unknown) => uncaught.push(error)

beforeAll(() => {
  process.on('uncaughtException', note).on('unhandledRejection', note)
})

afterAll(() => {
  process.off('uncaughtException', note).off('unhandledRejection', note)
  expect(uncaught).toEqual([])
})

describe.each(['sync', 'async'] as const)('a hook that answers %s', (way) => {
  const later = <T>(value: T): T | Promise<T> => (way === 'sync' ? value : sleep(1).then(() => value))

  it('connect gives an identity, so that no token is needed', async () => {
    const hooks: Hooks = {
      connect: ({ headers }) =>
        later({
          user: headers.cookie?.slice('sid='.length) ?? '',
          grants: [{ keys: ['chat.#'], allow: ['publish'] as const }],
        }),
    }
    await using serving = await Serving.start({ hooks })
    const client = await serving.connect({ headers: { cookie: 'sid=alice' } })
    expect(client.received('welcome')).toMatchObject([{ auth: 'none' }])
    const publish = (key: string) => client.request((id) => ({ verb: 'publish', id, key, echo: true, payload: '1' }))
    expect(await publish('chat.1')).toMatchObject({ verb: 'ok' })
    expect(await publish('other')).toMatchObject({ verb: 'error', code: 'E_FORBIDDEN' })
    expect(serving.bugs).toEqual([])
  })

  it('connect refuses with its code and text, for good', async () => {
    const hooks: Hooks = { connect: () => later({ refuse: { code: 'E_NO_CREDIT', message: 'pay first' } }) }
    await using serving = await Serving.start({ hooks })
    const client = await serving.connect()
    await client.until(() => client.closure !== undefined)
    expect(client.messages).toMatchObject([
      { verb: 'error', code: 'E_NO_CREDIT', message: 'pay first', retryable: false },
      { verb: 'bye', code: 4504 },
    ])
    expect(client.closure?.code).toBe(4504)
  })

  it('connect that says nothing leaves a client without rights, unless everyone has them', async () => {
    for (const insecure of [false, true]) {
      await using serving = await Serving.start({ insecure, hooks: { connect: () => later(undefined) } })
      const client = await serving.connect()
      const answer = await client.request((id) => ({ verb: 'listen', id, pattern: 'a' }))
      expect(answer).toMatchObject(insecure ? { verb: 'ok' } : { verb: 'error', code: 'E_FORBIDDEN' })
    }
  })

  it('publish refuses, changes the key and the payload, or says nothing', async () => {
    const hooks: Hooks = {
      publish: ({ key, isBinary, json, payload }) => {
        if (key !== 'bytes' && json() !== 'p') throw new Error('another payload')
        if (key === 'refused') return later({ refuse: { code: 'E_NO_CREDIT', message: 'no' } })
        if (key === 'moved') return later({ key: 'elsewhere', payload: { was: [...payload], isBinary } })
        if (key === 'bytes') return later({ payload: new Uint8Array([7]) })
        return later(undefined)
      },
    }
    await using serving = await Serving.start({ hooks })
    const client = await serving.connect()
    await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))
    const publish = (key: string) => client.request((id) => ({ verb: 'publish', id, key, echo: true, payload: '"p"' }))
    expect(await publish('refused')).toMatchObject({ verb: 'error', code: 'E_NO_CREDIT', message: 'no' })
    expect(await publish('moved')).toMatchObject({ verb: 'ok' })
    expect(await publish('bytes')).toMatchObject({ verb: 'ok' })
    expect(await publish('same')).toMatchObject({ verb: 'ok' })
    expect(client.received('message').map(({ key, payload }) => [key, payload])).toEqual([
      ['elsewhere', '{"was":[34,112,34],"isBinary":false}'],
      ['bytes', new Uint8Array([7])],
      ['same', '"p"'],
    ])
  })

  it('keeps the order of a connection', async () => {
    let count = 0
    const hooks: Hooks = {
      // The first is the slowest.
      publish: () => (way === 'sync' ? undefined : sleep(count++ === 0 ? 30 : 0).then(() => undefined)),
    }
    await using serving = await Serving.start({ hooks })
    const client = await serving.connect()
    client.send({ verb: 'listen', id: 'l', pattern: 'a' })
    const payloads = Array.from({ length: 20 }, (_, index) => String(index))
    for (const payload of payloads) client.send({ verb: 'publish', key: 'a', echo: true, payload })
    client.send({ verb: 'unlisten', id: 'u', pattern: 'a' })
    expect(await client.answerTo('u')).toMatchObject({ verb: 'ok' })
    expect(client.payloads).toEqual(payloads)
  })
})

it('publish may change what a stream says, and neither its key nor its kind', async () => {
  const answers = new Map<unknown, object>([
    ['move', { key: 'b' }],
    ['spoil', { payload: 7 }],
    ['word', { payload: 'WORD' }],
  ])
  const hooks: Hooks = { publish: ({ json, payload }) => answers.get(payload.length > 0 ? json() : '') }
  await using serving = await Serving.start({ hooks, history: ['#=100'] })
  const client = await serving.connect()
  const write = (sequence: number, kind: 'start' | 'append', payload: string) =>
    client.request((id) => ({ verb: 'stream', id, key: 'a', stream: 'one', sequence, kind, payload }))
  expect(await write(0, 'start', '')).toMatchObject({ verb: 'ok' })
  expect(await write(1, 'append', '"move"')).toMatchObject({ code: 'E_HOOK_FAILED' })
  expect(await write(1, 'append', '"spoil"')).toMatchObject({ code: 'E_PAYLOAD_INVALID' })
  expect(await write(1, 'append', '"word"')).toMatchObject({ verb: 'ok' })
  expect(await serving.server.readStream('a')).toMatchObject({ text: 'WORD', isCut: false })
  expect(await serving.server.readStream('b')).toMatchObject({ id: undefined })
})

const publish = (client: ProtocolClient, key: string, payload = '1') =>
  client.request((id) => ({ verb: 'publish', id, key, echo: true, payload }))
const listen = (client: ProtocolClient, pattern: string) => client.request((id) => ({ verb: 'listen', id, pattern }))

/** What a hook must not do, and what the log says. */
const FAULTS: readonly [string, () => unknown, string][] = [
  [
    'throws',
    () => {
      throw new TypeError('a bug of the application')
    },
    'a bug of the application',
  ],
  ['throws no error', () => Promise.reject('text'), 'text'],
  ['rejects', () => Promise.reject(new TypeError('a bug of the application')), 'a bug of the application'],
  ['hangs', () => new Promise(() => undefined), 'it did not answer within 50 ms'],
  ['answers a boolean', () => false, 'the answer is not an object'],
  ['answers with a member that nobody knows', () => ({ deny: true }), 'unknown member deny'],
  ['refuses with a code that is none', () => ({ refuse: { code: 'forbidden' } }), 'refuse.code is not'],
  ['refuses with too long a text', () => ({ refuse: { message: 'x'.repeat(201) } }), 'refuse.message is not'],
]

describe.each(FAULTS)('a hook that %s', (_, fault, reason) => {
  it('refuses that action alone, and is logged', async () => {
    const failing = (value: string) => (value === 'bad' ? fault() : undefined) as undefined
    const hooks: Hooks = {
      listen: ({ pattern }) => failing(pattern),
      publish: ({ key }) => failing(key),
      presence: ({ key }) => failing(key),
    }
    await using serving = await Serving.start({ hooks, hookTimeoutMs: 50 })
    const client = await serving.connect()
    const failed = { verb: 'error', code: 'E_HOOK_FAILED', message: 'a hook of the server failed', retryable: true }
    expect(await listen(client, 'bad')).toMatchObject(failed)
    expect(await publish(client, 'bad')).toMatchObject(failed)
    const get = (id: string) => ({ verb: 'presence', id, key: 'bad', op: 'get' }) as const
    expect(await client.request(get)).toMatchObject(failed)
    expect(await listen(client, 'good')).toMatchObject({ verb: 'ok' })
    expect(await publish(client, 'good')).toMatchObject({ verb: 'ok' })
    expect(serving.failures).toMatchObject([{ hook: 'listen' }, { hook: 'publish' }, { hook: 'presence' }])
    for (const { err } of serving.failures) expect(String(err?.stack ?? err)).toContain(reason)
    expect(serving.bugs).toEqual([])
    expect(serving.server.stats().hooks.publish).toEqual({ ok: 1, refused: 0, failed: 1 })
  })
})

it('refuses a changed key that is not granted or not valid, and a changed payload that is too large', async () => {
  const answers: Record<string, object> = {
    secret: { key: 'secret' },
    reserved: { key: '$internal' },
    invalid: { key: 'a b' },
    words: { key: `a${'.a'.repeat(40)}` },
    large: { payload: 'x'.repeat(100) },
    map: { payload: new Map() },
  }
  const hooks: Hooks = { publish: ({ json }) => answers[String(json())] }
  await using serving = await Serving.start({ hooks, jwt: { secret: TOKEN_SECRET }, maxPayloadBytes: 50 })
  const token = signedToken('alice', 60, ['chat.#'])
  const client = await serving.connect({ headers: { authorization: `Bearer ${token}` } })
  const codes = []
  for (const name of Object.keys(answers)) {
    const answer = await publish(client, 'chat.1', JSON.stringify(name))
    codes.push([name, answer.verb === 'error' ? answer.code : 'ok'])
  }
  expect(Object.fromEntries(codes)).toEqual({
    secret: 'E_FORBIDDEN',
    reserved: 'E_FORBIDDEN',
    invalid: 'E_HOOK_FAILED',
    words: 'E_KEY_INVALID',
    large: 'E_PAYLOAD_TOO_LARGE',
    map: 'E_HOOK_FAILED',
  })
})

it('keeps the payload for a hook that reads it late, and asks nothing that is not granted', async () => {
  const seen: unknown[] = []
  const hooks: Hooks = {
    publish: async ({ payload, json }) => {
      await sleep(5)
      seen.push(json(), String.fromCharCode(...payload))
    },
  }
  await using serving = await Serving.start({ hooks, jwt: { secret: TOKEN_SECRET } })
  const token = signedToken('alice', 60, ['chat.#'])
  const client = await serving.connect({ headers: { authorization: `Bearer ${token}` } })
  for (const payload of ['"one"', '"two"']) client.send({ verb: 'publish', key: 'chat.1', echo: true, payload })
  expect(await publish(client, 'other', '"never"')).toMatchObject({ code: 'E_FORBIDDEN' })
  expect(seen).toEqual(['one', '"one"', 'two', '"two"'])
})

it('asks connect after the token was verified, with its claims, and again for every later token', async () => {
  const seen: unknown[] = []
  const hooks: Hooks = {
    connect: ({ user, claims, headers, isRenewal }) => {
      seen.push([user, claims?.sub, headers['x-tenant'], isRenewal])
      return isRenewal ? { grants: [] } : { user: `tenant-${user}` }
    },
    listen: ({ user, claims, address, session, isReplay }) => {
      seen.push([user, claims?.sub, address, session.length, isReplay])
    },
  }
  await using serving = await Serving.start({ hooks, jwt: { secret: TOKEN_SECRET } })
  const client = await serving.connect({ headers: { 'x-tenant': 'acme' } })
  expect(client.received('welcome')).toMatchObject([{ auth: 'required' }])
  expect(seen).toEqual([])
  const auth = (user: string) =>
    client.request((id) => ({ verb: 'auth', id, token: signedToken(user, 60, ['chat.#']) }))
  expect(await auth('alice')).toMatchObject({ result: { userId: 'tenant-alice' } })
  expect(await listen(client, 'chat.1')).toMatchObject({ verb: 'ok' })
  expect(await auth('alice')).toMatchObject({ verb: 'error', code: 'E_FORBIDDEN' })
  expect(seen).toEqual([
    ['alice', 'alice', 'acme', false],
    ['tenant-alice', 'alice', '127.0.0.1', 16, false],
    ['alice', 'alice', undefined, true],
  ])
})

it('ends the listens that a renewal no longer grants, and the connection that it refuses', async () => {
  let round = 0
  const hooks: Hooks = {
    connect: ({ isRenewal }) => {
      if (!isRenewal) return undefined
      return round++ === 0 ? { grants: [] } : { refuse: { code: 'E_GONE', message: 'the account is closed' } }
    },
  }
  await using serving = await Serving.start({ hooks, jwt: { secret: TOKEN_SECRET } })
  const token = () => signedToken('alice', 60)
  const client = await serving.connect({ headers: { authorization: `Bearer ${token()}` } })
  await listen(client, 'chat')
  expect(await client.request((id) => ({ verb: 'auth', id, token: token() }))).toMatchObject({ verb: 'ok' })
  await client.until(() => client.received('error').some(({ pattern }) => pattern === 'chat'))
  expect(await client.request((id) => ({ verb: 'auth', id, token: token() }))).toMatchObject({ code: 'E_GONE' })
  await client.until(() => client.closure?.code === 4504)
})

it('asks nobody about a token that is not valid', async () => {
  let count = 0
  const hooks: Hooks = { connect: () => void count++ }
  await using serving = await Serving.start({ hooks, jwt: { secret: TOKEN_SECRET } })
  const client = await serving.connect({ headers: { authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.' } })
  await client.until(() => client.closure?.code === 4501)
  expect(count).toBe(0)
})

it('handles what a client sends before connect has answered after it', async () => {
  const answer = deferred<undefined>()
  const hooks: Hooks = { connect: () => answer.promise }
  await using serving = await Serving.start({ hooks, insecure: true })
  const { WebSocket } = await import('ws')
  const socket = new WebSocket(serving.url, ['webmq.v1'])
  const received: string[] = []
  socket.on('message', (data) => received.push(/^(?:ok )?\w+/.exec(String(data))?.[0] ?? ''))
  await new Promise((resolve) => socket.on('open', resolve))
  socket.send('auth 1\ntoken')
  socket.send('listen 2 a')
  socket.send('ping')
  await vi.waitFor(() => expect(received).toEqual(['pong']))
  answer.resolve(undefined)
  await vi.waitFor(() => expect(received).toEqual(['pong', 'welcome', 'ok 1', 'ok 2']))
  socket.terminate()
})

it('forgets a client that leaves before connect has answered', async () => {
  let answer = deferred<{ user: string }>()
  const left: unknown[] = []
  const hooks: Hooks = {
    connect: () => {
      answer = deferred()
      return answer.promise
    },
    disconnect: (notice) => left.push(notice),
  }
  await using serving = await Serving.start({ hooks, maxConnectionsPerUser: 1, insecure: true })
  const { WebSocket } = await import('ws')
  for (let attempt = 0; attempt < 2; attempt++) {
    const socket = new WebSocket(serving.url, ['webmq.v1'])
    await new Promise((resolve) => socket.on('open', resolve))
    socket.terminate()
    await vi.waitFor(() => expect(serving.server.stats().connectionCount).toBe(0))
    answer.resolve({ user: 'alice' })
  }
  const connecting = serving.connect()
  await vi.waitFor(() => expect(serving.server.stats().connectionCount).toBe(1))
  answer.resolve({ user: 'alice' })
  expect((await connecting).received('welcome')).toHaveLength(1)
  expect(left).toEqual([])
})

it('ends a connection after the time that connect gives', async () => {
  const hooks: Hooks = { connect: () => ({ user: 'alice', expiresInMs: 100 }) }
  await using serving = await Serving.start({ hooks })
  const client = await serving.connect()
  await client.until(() => client.closure?.code === 4009)
})

it('deliver drops and changes messages on their way, live ones and those of the log', async () => {
  const hooks: Hooks = {
    deliver: ({ key, json, position }) => {
      if (key === 'secret') return { drop: true }
      if (key === 'broken') throw new Error('a bug of the application')
      if (key === 'promise') return Promise.resolve() as never
      return key === 'plain' ? undefined : { payload: { redacted: json(), at: position !== undefined } }
    },
  }
  await using serving = await Serving.start({ hooks })
  const client = await serving.connect()
  await listen(client, '#')
  for (const key of ['secret', 'plain', 'broken', 'promise', 'other']) await publish(client, key, '"text"')
  const expected = ['"text"', '{"redacted":"text","at":true}']
  await client.until(() => client.payloads.length === 2)
  expect(client.payloads).toEqual(expected)
  expect(client.received('gap')).toMatchObject([{ pattern: '#', reason: 'refused' }, { reason: 'refused' }])
  const late = await serving.connect()
  const replayed = await late.request((id) => ({ verb: 'listen', id, pattern: '#', last: 10 }))
  expect(replayed).toMatchObject({ verb: 'ok', gap: 'refused', replayed: 2 })
  await late.until(() => late.payloads.length === 2)
  expect(late.payloads).toEqual(expected)
  const { messages } = await serving.server.history('secret')
  expect(messages).toEqual([])
  expect(serving.failures.map(({ hook }) => hook)).toContain('deliver')
  expect(serving.bugs).toEqual([])
})

it('presence refuses, and changes the data of a member', async () => {
  const hooks: Hooks = {
    presence: ({ op, key, data, user }) => {
      if (key === 'closed') return { refuse: {} }
      return op === 'enter' ? { data: { claimed: data(), user } } : undefined
    },
  }
  await using serving = await Serving.start({ hooks })
  const client = await serving.connect()
  const enter = (key: string) =>
    client.request((id) => ({ verb: 'presence', id, key, op: 'enter', member: 'm'.repeat(22), data: '"me"' }))
  expect(await enter('closed')).toMatchObject({ code: 'E_FORBIDDEN', message: 'refused' })
  expect(await enter('open')).toMatchObject({ verb: 'ok' })
  const op = (key: string, op: 'get' | 'watch' | 'leave') => client.request((id) => ({ verb: 'presence', id, key, op }))
  expect(await op('closed', 'watch')).toMatchObject({ code: 'E_FORBIDDEN' })
  expect(await op('open', 'get')).toMatchObject({ result: { members: [{ data: { claimed: 'me' } }] } })
  // Giving something up is never asked about.
  expect(await op('closed', 'leave')).toMatchObject({ verb: 'ok' })
})

it('tells disconnect of each connection that had an identity, once, whatever it does', async () => {
  const left: unknown[] = []
  const hooks: Hooks = {
    connect: ({ query }) => (query === '' ? { user: 'alice' } : { refuse: {} }),
    disconnect: ({ user, session, code, durationMs }) => {
      left.push([user, session.length, code, durationMs >= 0])
      if (left.length === 1) throw new Error('a bug of the application')
      return Promise.reject(new Error('another'))
    },
  }
  await using serving = await Serving.start({ hooks })
  const [first, second] = [await serving.connect(), await serving.connect()]
  first.socket.close(1000)
  await vi.waitFor(() => expect(left).toEqual([['alice', 16, 1000, true]]))
  second.socket.close(1000)
  await vi.waitFor(() => expect(serving.server.stats().hooks.disconnect).toEqual({ ok: 0, refused: 0, failed: 2 }))
  expect(serving.bugs).toEqual([])
})

it('asks nobody about what the process itself publishes', async () => {
  await using serving = await Serving.start({ hooks: { publish: () => ({ refuse: {} }) } })
  expect(await serving.server.publish('a', 1)).toMatchObject({ duplicate: false })
})

it('counts for the HTTP API too: who asks, publishes and reads', async () => {
  const hooks: Hooks = {
    connect: ({ headers, path }) =>
      headers.cookie === 'sid=7'
        ? { user: `alice of ${path}`, grants: [{ keys: ['chat.#'], allow: ['publish', 'listen'] }] }
        : undefined,
    listen: ({ op, pattern }) =>
      pattern === 'chat.secret' ? { refuse: { code: 'E_NOT_YOURS', message: op } } : undefined,
    publish: ({ key, user, address, json }) => {
      if (key === 'chat.broken') throw new Error('a bug of the application')
      if (key === 'chat.moved') return { key: 'elsewhere' }
      return { payload: { from: user, at: address, said: json() } }
    },
    presence: () => ({ refuse: {} }),
  }
  await using serving = await Serving.start({ hooks })
  const origin = serving.url.replace(/^ws/, 'http').replace(/\/ws$/, '')
  const ask = async (path: string, body?: object, headers: Record<string, string> = { cookie: 'sid=7' }) => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${origin}/api/${path}`, {
      ...init,
      headers: { 'content-type': 'application/json', ...headers },
    })
    return { status: response.status, json: (await response.json()) as Record<string, unknown> }
  }
  expect(await ask('publish', { key: 'chat.1', payload: 'hi' })).toMatchObject({ status: 200 })
  expect(await ask('publish', { key: 'chat.1', payload: 'hi' }, {})).toMatchObject({ status: 403 })
  expect(await ask('publish', { key: 'other', payload: 'hi' })).toMatchObject({ status: 403 })
  expect(await ask('publish', { key: 'chat.moved', payload: 1 })).toMatchObject({ json: { code: 'E_FORBIDDEN' } })
  expect(await ask('publish', { key: 'chat.broken', payload: 1 })).toMatchObject({
    status: 503,
    json: { code: 'E_HOOK_FAILED' },
  })
  const batch = { messages: ['chat.2', 'chat.broken'].map((key) => ({ key, payload: 1 })) }
  expect(await ask('publish/batch', batch)).toMatchObject({ status: 503, json: { code: 'E_HOOK_FAILED' } })
  expect(await ask('history?key=chat.secret')).toMatchObject({ status: 403, json: { code: 'E_NOT_YOURS' } })
  expect(await ask('history?key=chat.1')).toMatchObject({
    json: { messages: [{ payload: { from: 'alice of /api/publish', at: '127.0.0.1', said: 'hi' } }] },
  })
  expect(await ask('presence?key=chat.1')).toMatchObject({ status: 403 })
  const operator = { authorization: 'Bearer a-key-that-is-wrong' }
  expect(await ask('publish', { key: 'chat.1', payload: 'hi' }, operator)).toMatchObject({ status: 401 })
  expect(serving.bugs).toEqual([])
})
