import { Webhook as StandardWebhook } from 'standardwebhooks'
import { expect, it, vi } from 'vitest'
import type { ServerOptions } from '../../src/index.js'
import type { ProtocolClient } from '../protocol-client.js'
import { Backend } from './backend.js'
import { Serving } from './serving.js'

const EVERYTHING = [{ keys: ['#'], allow: ['listen', 'publish', 'presence'] }]
const SECRET = `whsec_${Buffer.from('a secret of more than 24 bytes').toString('base64')}`

const serve = (backend: Backend, webhook: ServerOptions['webhook'] | object, options: ServerOptions = {}) =>
  Serving.start({ ...options, webhook: { url: backend.url, ...webhook } })

const publish = (client: ProtocolClient, key: string, payload: string | Uint8Array = '{"n":1.0}') =>
  client.request((id) => ({ verb: 'publish', id, key, echo: true, payload }))

it('asks who connects, with the headers of the allow list, and gives the answer to the session', async () => {
  await using backend = await Backend.start()
  backend.answer = ({ headers }) =>
    headers.cookie === 'sid=7'
      ? { user: 'alice', grants: [{ keys: ['chat.#'], allow: ['publish'] }] }
      : { refuse: { code: 'E_SIGN_IN', message: 'sign in' } }
  await using serving = await serve(backend, {})
  const headers = { cookie: 'sid=7', authorization: 'Basic eA==', 'x-private': 'no' }
  const client = await serving.connect({ headers })
  expect(await publish(client, 'chat.1')).toMatchObject({ verb: 'ok' })
  expect(await publish(client, 'other')).toMatchObject({ code: 'E_FORBIDDEN' })
  const stranger = await serving.connect()
  expect(stranger.messages[0]).toMatchObject({ verb: 'error', code: 'E_SIGN_IN', message: 'sign in' })
  await stranger.until(() => stranger.closure?.code === 4504)

  const [asked] = backend.requests
  expect(asked?.method).toBe('POST')
  expect(asked?.headers).toMatchObject({ cookie: 'sid=7', authorization: 'Basic eA==' })
  expect(asked?.headers).not.toHaveProperty('x-private')
  expect(asked?.json).toEqual({
    event: 'connect',
    session: client.received('welcome')[0]?.session,
    address: '127.0.0.1',
    path: '/ws',
    query: '',
    isRenewal: false,
  })
  // The second question took the same connection.
  expect(backend.connectionCount).toBe(1)
})

it('asks about listens, reads of the history, publishes and presence', async () => {
  await using backend = await Backend.start()
  backend.answer = ({ json }) => {
    if (json.event === 'publish' && json.key === 'bytes') return { base64: 'AQI=', key: 'moved' }
    if (json.event === 'publish' && json.key === 'json') return { payload: { ...json.payload, checked: true } }
    if (json.event === 'presence') return { data: { name: 'as the backend knows it' } }
    return json.pattern === 'secret' ? { refuse: { message: 'not yours' } } : undefined
  }
  await using serving = await serve(backend, { events: ['listen', 'publish', 'presence'] })
  const client = await serving.connect()
  const listen = (pattern: string) => client.request((id) => ({ verb: 'listen', id, pattern }))
  expect(await listen('#')).toMatchObject({ verb: 'ok' })
  expect(await listen('secret')).toMatchObject({ verb: 'error', code: 'E_FORBIDDEN', message: 'not yours' })
  expect(await client.request((id) => ({ verb: 'history', id, key: 'secret' }))).toMatchObject({ code: 'E_FORBIDDEN' })
  await publish(client, 'bytes', new Uint8Array([9]))
  await publish(client, 'json', '{"id":12345678901234567890}')
  const enter = (id: string) =>
    ({ verb: 'presence', id, key: 'room', op: 'enter', member: 'm'.repeat(22), data: '{"name":"liar"}' }) as const
  expect(await client.request(enter)).toMatchObject({ verb: 'ok' })
  const members = await client.request((id) => ({ verb: 'presence', id, key: 'room', op: 'get' }))

  expect(client.received('message').map(({ key, payload }) => [key, payload])).toEqual([
    ['moved', new Uint8Array([1, 2])],
    ['json', '{"id":12345678901234567000,"checked":true}'],
  ])
  expect(members).toMatchObject({ result: { members: [{ data: { name: 'as the backend knows it' } }] } })
  await client.request((id) => ({ verb: 'publish', id, key: 'typing', echo: true, ephemeral: true, payload: '1' }))
  expect(backend.questions('publish').map(({ json }) => json)).toMatchObject([
    { key: 'bytes', isEphemeral: false, base64: 'CQ==' },
    { key: 'json', isEphemeral: false },
    { key: 'typing', isEphemeral: true },
  ])
  expect(backend.questions('publish')[1]?.body).toContain('"payload":{"id":12345678901234567890}')
  expect(backend.questions('listen').map(({ json }) => [json.op, json.pattern])).toEqual([
    ['listen', '#'],
    ['listen', 'secret'],
    ['history', 'secret'],
  ])
})

it('signs every request, as another implementation verifies it', async () => {
  await using backend = await Backend.start()
  await using serving = await serve(backend, { secret: SECRET, events: ['connect', 'connected'] })
  await serving.connect()
  await vi.waitFor(() => expect(backend.requests.length).toBe(2))
  const standard = new StandardWebhook(SECRET)
  for (const { body, headers } of backend.requests) {
    const signed = headers as Record<string, string>
    expect(() => standard.verify(body, signed)).not.toThrow()
    expect(() => standard.verify(`${body} `, signed)).toThrow()
    expect(() => new StandardWebhook(Buffer.from('another').toString('base64')).verify(body, signed)).toThrow()
  }
})

it('tells who connected, published and disconnected, in order and in batches', async () => {
  await using backend = await Backend.start()
  const events = ['connected', 'disconnected', 'published']
  await using serving = await serve(backend, { events, published: ['orders.#'] })
  const client = await serving.connect()
  const { session } = client.received('welcome')[0] ?? {}
  for (let n = 0; n < 250; n++) client.send({ verb: 'publish', key: 'orders.1', echo: true, payload: `${n}` })
  await publish(client, 'chat.1', '1')
  await serving.server.publish('orders.2', 'from the process')
  await serving.server.publish('orders.3', 'not logged', { ephemeral: true })
  client.close()
  await vi.waitFor(() => expect(backend.notices.length).toBe(254))
  expect(backend.notices[0]).toEqual({ event: 'connected', at: expect.any(Number), session, address: '127.0.0.1' })
  expect(backend.notices.slice(1, 251).map(({ payload }) => payload)).toEqual(Array.from({ length: 250 }, (_, n) => n))
  expect(backend.notices[251]).toMatchObject({ event: 'published', key: 'orders.2', payload: 'from the process' })
  expect(backend.notices[251]).not.toHaveProperty('isEphemeral')
  expect(backend.notices[252]).toMatchObject({ event: 'published', key: 'orders.3', isEphemeral: true })
  expect(backend.notices[252]).not.toHaveProperty('position')
  expect(backend.notices[253]).toMatchObject({ event: 'disconnected', session, code: 1005 })
  expect(backend.requests.length).toBeLessThan(20)
  expect(serving.server.stats().webhook).toMatchObject({ sentCount: 254, droppedCount: 0, waitingCount: 0 })
})

it('tells again what the backend did not take, once', async () => {
  await using backend = await Backend.start()
  let failureCount = 0
  backend.answer = () => (failureCount++ < 2 ? { status: 500, text: 'no' } : undefined)
  await using serving = await serve(backend, { events: ['connected'] })
  await serving.connect()
  await vi.waitFor(() => expect(serving.server.stats().webhook?.sentCount).toBe(1))
  expect(backend.requests.length).toBe(3)
  expect(new Set(backend.requests.map(({ body }) => body)).size).toBe(1)
})

const FAULTS: readonly [string, Backend['answer'], string][] = [
  ['answers 500', () => ({ status: 500, text: '{}' }), 'it answered 500'],
  ['answers 404', () => ({ status: 404, text: '{}' }), 'it answered 404'],
  [
    'redirects',
    (_, response) => {
      response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end()
      return 'none'
    },
    'it answered 307',
  ],
  ['hangs', () => 'none', 'it did not answer within 100 ms'],
  [
    'stops in the middle of an answer',
    (_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"gr')
      return 'none'
    },
    'it did not answer within 100 ms',
  ],
  [
    'closes',
    (_, response) => {
      response.destroy()
      return 'none'
    },
    'socket hang up',
  ],
  ['answers no JSON', () => ({ status: 200, text: '<b>Fatal error</b>' }), 'the answer is not JSON'],
  ['answers a list', () => ({ status: 200, text: '[]' }), 'the answer is not a JSON object'],
  ['answers something else', () => ({ allow: true }), 'unknown member allow'],
  ['gives malformed grants', () => ({ grants: [{ keys: ['a b'], allow: ['listen'] }] }), 'webmq.grants[0].keys[0]'],
  ['gives a user that breaks lines', () => ({ user: 'a\nb' }), 'user contains a control character'],
  ['refuses without a code', () => ({ refuse: { code: 'no' } }), 'refuse.code is not'],
  ['refuses with a novel', () => ({ refuse: { message: 'x'.repeat(201) } }), 'refuse.message is not'],
  ['answers too much', () => ({ status: 200, text: ' '.repeat(262_145) }), 'more than 262144 bytes'],
]

it.each(FAULTS)('refuses a connection when the backend %s, and says why in the log', async (_, answer, reason) => {
  await using backend = await Backend.start()
  backend.answer = answer
  // Only who hangs is waited for.
  await using serving = await serve(backend, { timeoutMs: reason.includes('within') ? 100 : 10_000 })
  const client = await serving.connect()
  await client.until(() => client.closure !== undefined)
  expect(client.messages).toMatchObject([
    { verb: 'error', code: 'E_HOOK_FAILED', message: 'a hook of the server failed', retryable: true },
    { verb: 'bye', code: 4014 },
  ])
  expect(serving.failures).toMatchObject([{ hook: 'connect', source: 'webhook' }])
  expect(serving.failures[0]?.err?.message).toContain(reason)
  expect(serving.bugs).toEqual([])
})

// Each answer of a backend counts, even 500: a client can cause it, and must get nothing by it.
it('refuses what the backend answers with 500, also when told to go on without it, and whoever connects unasked', async () => {
  await using backend = await Backend.start()
  backend.answer = () => ({ status: 500, text: '' })
  await using serving = await serve(backend, { events: ['publish'], failure: 'open' }, { insecure: true })
  const client = await serving.connect()
  expect(await publish(client, 'a')).toMatchObject({ code: 'E_HOOK_FAILED' })
  await using asking = await serve(backend, { events: ['connect'], failure: 'open' }, { insecure: true })
  await backend[Symbol.asyncDispose]()
  const stranger = await asking.connect()
  await stranger.until(() => stranger.closure?.code === 4014)
})

// Symptom: five payloads that made a backend answer 500 opened the breaker, and all other clients were refused.
it('goes on asking for others while one client makes it fail, and about other actions while one fails for all', async () => {
  await using backend = await Backend.start()
  let count = 0
  backend.answer = ({ json }) => {
    if (json.event === 'connect')
      return { user: `user-${count++}`, grants: [{ keys: ['#'], allow: ['publish', 'listen'] }] }
    return json.key === 'evil' ? { status: 500, text: '' } : undefined
  }
  await using serving = await serve(backend, { events: ['connect', 'listen', 'publish'] })
  const [evil, second, third, victim] = await Promise.all(Array.from({ length: 4 }, () => serving.connect()))
  for (let n = 0; n < 20; n++) await publish(evil as ProtocolClient, 'evil')
  expect(serving.server.stats().webhook).toMatchObject({ breaker: 'closed' })
  expect(await publish(victim as ProtocolClient, 'a')).toMatchObject({ verb: 'ok' })
  for (let n = 0; n < 2; n++) {
    for (const client of [evil, second, third]) await publish(client as ProtocolClient, 'evil')
  }
  expect(serving.server.stats().webhook).toMatchObject({ breaker: 'open', openCount: 1 })
  const listened = await (victim as ProtocolClient).request((id) => ({ verb: 'listen', id, pattern: 'a' }))
  expect(listened).toMatchObject({ verb: 'ok' })
})

it('goes on without a silent webhook when told so, for what it was asked about', async () => {
  await using backend = await Backend.start()
  backend.answer = () => 'none'
  const events = ['publish']
  await using everyone = await serve(backend, { events, failure: 'open', timeoutMs: 100 }, { insecure: true })
  const other = await everyone.connect()
  expect(await publish(other, 'a')).toMatchObject({ verb: 'ok' })
  expect(everyone.server.stats().webhook).toMatchObject({ ignoredCount: 1 })
  expect(everyone.log.some(({ level, message }) => level === 'warn' && message?.includes('ignored'))).toBe(true)
})

it('stops asking a backend that fails for several clients, tries again, and asks once it works', async () => {
  await using backend = await Backend.start()
  let count = 0
  const rights = { grants: [{ keys: ['#'], allow: ['publish'] }] }
  const admit = () => ({ user: `user-${count++}`, ...rights })
  backend.answer = ({ json }) => (json.event === 'connect' ? admit() : { status: 503, text: '' })
  await using serving = await serve(backend, { events: ['connect', 'publish'] })
  const clients = await Promise.all(Array.from({ length: 3 }, () => serving.connect()))
  const askedCount = backend.requests.length
  const refused = async (n: number) =>
    expect(await publish(clients[n % 3] as ProtocolClient, 'a')).toMatchObject({ code: 'E_HOOK_FAILED' })
  for (let n = 0; n < 5; n++) await refused(n)
  // At once: a second later it tries again.
  await Promise.all(Array.from({ length: 16 }, (_, n) => refused(n)))
  expect(backend.requests.length - askedCount).toBe(5)
  expect(serving.server.stats().webhook).toMatchObject({ breaker: 'open', openCount: 1 })
  backend.answer = () => undefined
  const again = () => publish(clients[0] as ProtocolClient, 'a')
  await vi.waitFor(async () => expect(await again()).toMatchObject({ verb: 'ok' }))
  expect(serving.server.stats().webhook).toMatchObject({ breaker: 'closed', openCount: 1 })
  const lines = serving.log.filter(({ message }) => message?.startsWith('the webhook')).map(({ level }) => level)
  expect(lines).toEqual(['warn', 'info'])
})

// Symptom: hostile publishers made a node ask its webhook with half of a core. Cause: a question was charged as nothing.
it('charges its questions to the client that caused them', async () => {
  await using backend = await Backend.start()
  backend.answer = () => undefined
  const limits = { workPerSecond: 1_000, workBurst: 1_000 }
  await using serving = await serve(backend, { events: ['publish'] }, limits)
  const client = await serving.connect()
  const send = () => client.send({ verb: 'publish', key: 'a', echo: true, payload: '1' })
  for (let n = 0; n < 50; n++) send()
  const pauses = () => {
    send()
    expect(serving.server.stats().work.pauseCount).toBeGreaterThan(0)
  }
  await vi.waitFor(pauses)

  await using another = await serve(backend, { events: ['publish'] }, limits)
  const batch = { messages: Array.from({ length: 100 }, () => ({ key: 'a', payload: 1 })) }
  const post = () =>
    fetch(`${another.url.replace('ws:', 'http:').replace('/ws', '')}/api/publish/batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(batch),
    })
  expect([(await post()).status, (await post()).status]).toEqual([200, 429])
})

it('asks about what a client may do only', async () => {
  await using backend = await Backend.start()
  backend.answer = ({ json }) => (json.event === 'connect' ? { user: 'bob', grants: [] } : undefined)
  await using serving = await serve(backend, { events: ['connect', 'listen', 'publish', 'presence'] })
  const client = await serving.connect()
  expect(await publish(client, 'a')).toMatchObject({ code: 'E_FORBIDDEN' })
  expect(await client.request((id) => ({ verb: 'listen', id, pattern: 'a' }))).toMatchObject({ code: 'E_FORBIDDEN' })
  const get = (id: string) => ({ verb: 'presence', id, key: 'a', op: 'get' }) as const
  expect(await client.request(get)).toMatchObject({ code: 'E_FORBIDDEN' })
  expect(backend.requests.map(({ json }) => json.event)).toEqual(['connect'])
})

it('passes no header on that a client made invalid', async () => {
  await using backend = await Backend.start()
  backend.answer = () => ({ grants: EVERYTHING })
  await using serving = await serve(backend, { headers: ['x-token', 'cookie'] })
  await serving.connect({ headers: { 'x-token': 'caf\u00e9', cookie: 'a=b' } })
  expect(backend.requests[0]?.headers.cookie).toBe('a=b')
  expect(serving.failures).toEqual([])
})

it('tells of patterns that are occupied and vacated, signed, and keeps on until the webhook takes it', async () => {
  await using backend = await Backend.start()
  let refusedCount = 0
  backend.answer = () => (++refusedCount <= 2 ? { status: 503, text: '' } : undefined)
  const webhook = { events: ['occupancy'], occupancy: ['chat.*'], occupancyGraceMs: 50, secret: SECRET }
  await using serving = await serve(backend, webhook)
  const client = await serving.connect()
  for (const pattern of ['#', 'chat.#', 'chat.1', 'orders.1']) {
    await client.request((id) => ({ verb: 'listen', id, pattern }))
  }
  const told = () => backend.notices.map(({ event, pattern }) => `${event} ${pattern}`)
  await vi.waitFor(() => expect(told()).toContain('occupied chat.1'), { timeout: 10_000 })
  expect(serving.server.stats().occupancy).toMatchObject({ occupiedCount: 1, droppedCount: 0 })
  client.socket.terminate()
  await vi.waitFor(() => expect(told().at(-1)).toBe('vacated chat.1'), { timeout: 10_000 })
  expect(new Set(told())).toEqual(new Set(['vacated-all undefined', 'occupied chat.1', 'vacated chat.1']))
  for (const { headers, body } of backend.requests) {
    expect(() => new StandardWebhook(SECRET).verify(body, headers as Record<string, string>)).not.toThrow()
  }
  expect(serving.bugs).toEqual([])
})
