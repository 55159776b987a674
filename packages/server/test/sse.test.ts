import { Agent } from 'node:http'
import { SignJWT } from 'jose'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually, SseClient, WebSocketClient } from 'webmq-conformance'
import { createServer } from '../src/create-server.js'
import type { ServerOptions } from '../src/doors/options/server-options.js'
import { useOwnClock } from './own-clock.js'
import { SseReader } from './sse-reader.js'

const SECRET = 'a secret of more than thirty-two bytes'
const ORIGIN = 'https://app.example'

function token({ keys = ['#'], lifeMs = 60_000 } = {}): Promise<string> {
  return new SignJWT({ webmq: { grants: [{ keys, allow: ['listen'] }] } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('ann')
    .setExpirationTime((Date.now() + lifeMs) / 1_000)
    .sign(new TextEncoder().encode(SECRET))
}

async function start(options: ServerOptions = {}) {
  const server = createServer({ port: 0, logLevel: 'silent', closeTimeoutMs: 500, ...options })
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const { port, url } = await server.start()
  return { server, port, url }
}

describe.each(['native', 'ws'] as const)('event streams on the %s transport', (transport) => {
  it('bring the messages of all patterns once each, beside WebSockets', async () => {
    const { server, port, url } = await start({ transport, history: ['#=5000,1h'] })
    const reader = await SseReader.open(port, 'listen=chat.%23&listen=%23&listen=chat.%23')
    const other = await SseReader.open(port, 'listen=other')
    const client = await WebSocketClient.open(url)
    onTestFinished(() => client.destroy())
    client.send('listen 1 chat.#')
    await eventually(() => expect(client.texts.some((text) => text.startsWith('ok 1'))).toBe(true))
    await server.publish('chat.1', { text: 'a\nb' })
    await server.publish('other', Uint8Array.of(0, 255))
    await eventually(() => expect(other.messages).toHaveLength(1))
    expect(reader.messages).toEqual([
      { key: 'chat.1', payload: { text: 'a\nb' } },
      { key: 'other', base64: 'AP8=' },
    ])
    expect(client.texts.at(-1)).toContain('{"text":"a\\nb"}')
    expect(reader.events.map(({ name }) => name)).toEqual(['welcome', 'live', 'message', 'message'])
    expect(server.stats().connectionCount).toBe(3)
  })

  it('resume behind `Last-Event-ID`, which wins over the query, and tell that nothing is missing', async () => {
    const { server, port } = await start({ transport, history: ['a.#=100,1h', 'b=100,1h'] })
    const query = 'listen=a.%23&listen=b&listen=unlogged&last=1'
    const first = await SseReader.open(port, query)
    await server.publish('a.1', 1)
    await server.publish('unlogged', 'lost')
    await server.publish('b', 2)
    await eventually(() => expect(first.messages).toHaveLength(3))
    first.client.destroy()
    for (let number = 3; number < 10; number++) await server.publish(number % 2 === 0 ? 'b' : 'a.x', number)
    const { lastEventId = '' } = first
    const again = await SseReader.open(port, query, { 'last-event-id': lastEventId })
    expect(again.messages.map(({ payload, replay }) => [payload, replay])).toEqual(
      [3, 4, 5, 6, 7, 8, 9].map((number) => [number, true]),
    )
    const { data, id } = await again.next('live')
    expect(data).toEqual({ position: id })
    expect(again.named('gap').map(({ data }) => data)).toEqual([{ pattern: 'unlogged', reason: 'no-history' }])
    const logged = await SseReader.open(port, 'listen=a.%23&listen=b', { 'last-event-id': lastEventId })
    expect((await logged.next('live')).data).toEqual({ position: id, recovered: true })
    expect(logged.messages).toEqual(again.messages)
    await server.publish('a.1', 10)
    await eventually(() => expect(again.messages.at(-1)).toEqual({ key: 'a.1', payload: 10 }))
  })

  it('lose and double nothing while readers come back in the middle of a replay', async () => {
    const { server, port } = await start({ transport, history: ['#=5000,1h'] })
    const payload = 'x'.repeat(2_000)
    let published = 0
    const publish = async (count: number) => {
      for (const end = published + count; published < end; published++) {
        await server.publish(`k.${published % 3}`, { number: published, payload })
      }
    }
    // More than two pages, and more than an outbox.
    await publish(1_200)
    const numbers: number[] = []
    let lastEventId: string | undefined
    for (let attempt = 0; numbers.length < published; attempt++) {
      const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
      const reader = new SseReader(port, 'listen=k.0&listen=k.1&listen=k.2&rewind=1h', headers)
      // The stream is cut somewhere, also between the lines of an event.
      const { client } = reader
      const isCut = () => attempt < 5 && client.body.length > 50_000 * (attempt + 1)
      await eventually(() => expect(isCut() || client.body.includes('event: live')).toBe(true))
      client.destroy()
      numbers.push(...reader.messages.map(({ payload: { number } }) => number))
      lastEventId = reader.lastEventId ?? lastEventId
      expect(reader.named('gap')).toEqual([])
      if (attempt < 5) await publish(10)
    }
    expect(numbers).toEqual(Array.from({ length: published }, (_, number) => number))
  })

  it('end with the token, and say so', async () => {
    const clock = useOwnClock()
    const { port } = await start({ transport, jwt: { secret: SECRET } })
    const headers = { authorization: `Bearer ${await token({ lifeMs: 20_000 })}` }
    const reader = await SseReader.open(port, 'listen=a', headers)
    expect((await reader.next('welcome')).data.expiresInMs).toBeLessThanOrEqual(20_000)
    clock.putForward(20_000)
    expect((await reader.next('bye')).data).toEqual({ code: 'E_TOKEN_EXPIRED', closeCode: 4009 })
    expect(reader.named('expiring')).toHaveLength(1)
    await eventually(() => expect(reader.client.isEnded).toBe(true))
  })

  it('count towards the limits of connections', async () => {
    const { port } = await start({ transport, jwt: { secret: SECRET }, maxConnectionsPerUser: 1 })
    const headers = { authorization: `Bearer ${await token()}` }
    const first = await SseReader.open(port, 'listen=a', headers)
    const second = new SseReader(port, 'listen=a', headers)
    expect((await second.next('refused')).data.code).toBe('E_CONNECTION_LIMIT')
    expect((await second.next('bye')).data.code).toBe('E_CONNECTION_LIMIT')
    first.client.destroy()
    await eventually(() => expect(first.client.isEnded).toBe(true))
    await eventually(async () => SseReader.open(port, 'listen=a', headers))
  })
})

it('says who published a message, and when, to streams that ask', async () => {
  const { server, port } = await start({ history: ['chat.#=100'], meta: ['chat.#'] })
  await server.publish('chat.1', 'replayed')
  const asking = await SseReader.open(port, 'listen=chat.%23&listen=other&last=1&meta')
  const plain = await SseReader.open(port, 'listen=chat.%23')
  await server.publish('chat.1', 'live', { ephemeral: true })
  await server.publish('other', 'unstamped')
  await eventually(() => expect(asking.messages).toHaveLength(3))
  const stamp = { timeMs: expect.any(Number), id: expect.stringMatching(/^[\w-]{22}$/) }
  expect(asking.messages).toEqual([
    { key: 'chat.1', payload: 'replayed', replay: true, ...stamp },
    { key: 'chat.1', payload: 'live', ...stamp },
    { key: 'other', payload: 'unstamped' },
  ])
  await eventually(() => expect(plain.messages).toEqual([{ key: 'chat.1', payload: 'live' }]))
  const refused = await fetch(`http://127.0.0.1:${port}/sse?listen=other&meta`)
  expect(await refused.text()).toContain('E_UNSUPPORTED')
})

it('tells of a gap: of a position that is gone, and while the stream is open', async () => {
  const { server, port } = await start({ history: ['#=10,1h'], historyMaxMessages: 2 })
  const reader = await SseReader.open(port, 'listen=a&listen=b.%23&since=other:1')
  expect(reader.named('gap').map(({ data }) => data)).toEqual([
    { pattern: 'a', reason: 'epoch-changed' },
    { pattern: 'b.#', reason: 'epoch-changed' },
  ])
  expect((await reader.next('live')).data.recovered).toBeUndefined()
  const { lastEventId = '' } = reader
  for (let number = 0; number < 5; number++) await server.publish('a', number)
  const late = await SseReader.open(port, 'listen=a', { 'last-event-id': lastEventId })
  expect(late.named('gap').map(({ data }) => data)).toEqual([{ pattern: 'a', reason: 'history-expired' }])
  expect(late.messages.map(({ payload }) => payload)).toEqual([3, 4])
})

it('counts each pattern that resumes, as recovered or with a gap', async () => {
  const { server, port } = await start({ history: ['a.#=10,1h', 'b=10,1h'] })
  const query = 'listen=a.%23&listen=b&listen=unlogged'
  const first = await SseReader.open(port, `${query}&last=1`)
  expect(server.stats().resumeCounts).toMatchObject({ recovered: 0, gap: 0 })
  await SseReader.open(port, query, { 'last-event-id': first.lastEventId ?? '' })
  expect(server.stats().resumeCounts).toMatchObject({ recovered: 2, gap: 1 })
  await SseReader.open(port, `${query}&since=other:1`)
  expect(server.stats().resumeCounts).toMatchObject({ recovered: 2, gap: 4 })
})

// The notices of patterns that drop messages are those of WebSockets. A stream that lags is closed instead, and resumes.
it.each(['native', 'ws'] as const)(
  'gets no notice of dropped messages, whatever `overflow` says (%s)',
  async (transport) => {
    const overflow = ['a=drop-oldest', 'b=latest']
    const { server, port, url } = await start({ transport, overflow, history: ['#=10,1h'] })
    const reader = await SseReader.open(port, 'listen=a&listen=b')
    const client = await WebSocketClient.open(url)
    onTestFinished(() => client.destroy())
    for (const [id, pattern] of ['a', 'b'].entries()) client.send(`listen ${id} ${pattern}`)
    await eventually(() => expect(client.texts.filter((text) => text.startsWith('ok'))).toHaveLength(2))
    reader.client.pause()
    const payload = 'x'.repeat(200_000)
    await eventually(async () => {
      for (const key of ['a', 'b']) await server.publish(key, payload)
      expect(server.stats().transport.slowConsumerCount).toBe(1)
    })
    reader.client.resume()
    await eventually(() => expect(reader.client.isEnded).toBe(true))
    expect(new Set(reader.events.map(({ name }) => name))).toEqual(new Set(['welcome', 'live', 'message']))
    expect(reader.client.body).not.toMatch(/^gap /m)
  },
)

// A browser asks again for the position that it has. Answered with an error, it would do so for ever.
it('tells of a gap when the log ends before the position', async () => {
  const { server, port } = await start({ history: ['#=10,1h'] })
  const first = await SseReader.open(port, 'listen=a')
  const [epoch] = (first.lastEventId ?? '').split(':')
  const reader = await SseReader.open(port, 'listen=a', { 'last-event-id': `${epoch}:zz` })
  expect(reader.named('gap').map(({ data }) => data)).toEqual([{ pattern: 'a', reason: 'broker-lost' }])
  await server.publish('a', 1)
  await eventually(() => expect(reader.messages).toEqual([{ key: 'a', payload: 1 }]))
  expect(reader.lastEventId).toMatch(new RegExp(`^${epoch}:1\\.[\\w-]{5}$`))
})

// A publisher chooses the bytes of a payload. Put into the JSON of the event as they are, they could replace the key.
it('does not let a payload become a part of the event around it', async () => {
  const { url, port } = await start()
  const reader = await SseReader.open(port, 'listen=a')
  const client = await WebSocketClient.open(url)
  onTestFinished(() => client.destroy())
  const payloads = [
    '1,"key":"admin"',
    '1}\n\nevent: bye\ndata: {}',
    '{"a":\r\n1,\n"b":2}',
    '',
    '1}{',
    '"\\u2028\u2028"',
  ]
  for (const payload of payloads) client.send(`publish - a\n${payload}`)
  await eventually(() => expect(reader.messages).toHaveLength(payloads.length))
  expect(reader.messages).toEqual([
    { key: 'a', text: payloads[0] },
    { key: 'a', text: payloads[1] },
    { key: 'a', payload: { a: 1, b: 2 } },
    { key: 'a', text: '' },
    { key: 'a', text: '1}{' },
    { key: 'a', payload: '\u2028\u2028' },
  ])
  expect(reader.named('bye')).toEqual([])
})

it.each([
  ['no pattern', 'last=1', 'E_MESSAGE_INVALID', 400],
  ['a bad pattern', 'listen=a..%00', 'E_PATTERN_INVALID', 400],
  ['a pattern with too many words', `listen=${'a.'.repeat(300)}a`, 'E_PATTERN_INVALID', 400],
  ['a pattern of servers', 'listen=$webmq.%23', 'E_FORBIDDEN', 403],
  ['too many listens', 'listen=a&listen=b&listen=c', 'E_LISTEN_LIMIT', 400],
  ['too many searches', 'listen=%23.a&listen=%23.b', 'E_LISTEN_LIMIT', 400],
  ['a bad position', 'listen=a&since=1', 'E_POSITION_INVALID', 400],
  ['two positions', 'listen=a&since=e:1&since=e:2', 'E_MESSAGE_INVALID', 400],
  ['last and rewind', 'listen=a&last=1&rewind=1m', 'E_MESSAGE_INVALID', 400],
  ['a bad number', 'listen=a&last=-1', 'E_MESSAGE_INVALID', 400],
  ['a bad time', 'listen=a&rewind=1y', 'E_MESSAGE_INVALID', 400],
])('refuses %s', async (_what, query, code, status) => {
  const { server, port } = await start({ maxListensPerConnection: 2, maxSearchListensPerConnection: 1 })
  expect(await new SseReader(port, query).refusal()).toMatchObject({ status, code })
  expect(server.stats().connectionCount).toBe(0)
})

it('refuses a position of `Last-Event-ID` that is none', async () => {
  const { port } = await start()
  const reader = new SseReader(port, 'listen=a', { 'last-event-id': 'x\u00ff' })
  expect(await reader.refusal()).toMatchObject({ status: 400, code: 'E_POSITION_INVALID' })
})

it('refuses requests without a token that grants all of their patterns', async () => {
  const { port } = await start({ jwt: { secret: SECRET } })
  const answer = async (query: string, authorization?: string) =>
    await new SseReader(port, query, authorization === undefined ? {} : { authorization }).refusal()
  const none = await answer('listen=a')
  expect(none).toMatchObject({ status: 401, code: 'E_UNAUTHENTICATED', headers: { 'www-authenticate': 'Bearer' } })
  expect(await answer('listen=a', 'Bearer x')).toMatchObject({ status: 401, code: 'E_TOKEN_INVALID' })
  const expired = await token({ lifeMs: -600_000 })
  expect(await answer('listen=a', `Bearer ${expired}`)).toMatchObject({ status: 401, code: 'E_TOKEN_EXPIRED' })
  expect(await answer(`listen=a&access_token=${await token()}`)).toMatchObject({ status: 401 })
  const narrow = await token({ keys: ['a'] })
  expect(await answer('listen=a&listen=b', `Bearer ${narrow}`)).toMatchObject({ status: 403, code: 'E_FORBIDDEN' })
  await SseReader.open(port, 'listen=a', { authorization: `Bearer ${narrow}` })
})

it('refuses pages of other origins, and lets those that are allowed read its answers', async () => {
  const { port } = await start({ jwt: { secret: SECRET }, origins: [ORIGIN] })
  const authorization = `Bearer ${await token()}`
  const refused = await new SseReader(port, 'listen=a', { origin: 'https://evil.example', authorization }).refusal()
  expect(refused).toMatchObject({ status: 403, code: 'E_ORIGIN_FORBIDDEN' })
  expect(refused.headers['access-control-allow-origin']).toBeUndefined()
  const reader = await SseReader.open(port, 'listen=a', { origin: ORIGIN, authorization })
  expect((await reader.client.response()).headers).toMatchObject({
    'access-control-allow-origin': ORIGIN,
    vary: 'Origin',
  })
  const wrong = await new SseReader(port, 'listen=a', { origin: ORIGIN }).refusal()
  expect(wrong).toMatchObject({ status: 401, headers: { 'access-control-allow-origin': ORIGIN } })
})

it('answers preflights of allowed origins, and refuses other methods', async () => {
  const { port } = await start({ origins: [ORIGIN] })
  const ask = (method: string, origin: string) =>
    fetch(`http://127.0.0.1:${port}/sse?listen=a`, { method, headers: { origin } })
  const preflight = await ask('OPTIONS', ORIGIN)
  expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, ORIGIN])
  expect(preflight.headers.get('access-control-allow-headers')).toContain('authorization')
  const foreign = await ask('OPTIONS', 'https://evil.example')
  expect([foreign.status, foreign.headers.get('access-control-allow-origin')]).toEqual([405, null])
  const post = await ask('POST', ORIGIN)
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET'])
})

// Symptom: behind a proxy that reuses its connections, browsers gave up with ERR_TOO_MANY_REDIRECTS, because a stream was served to
// the first request of a connection alone, and every other one was sent to a new connection.
it.each(['native', 'ws'] as const)('is served to a later request of a connection too (%s)', async (transport) => {
  const { port, server } = await start({ transport })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  const health = new SseClient(port, '/health', { agent })
  await eventually(() => expect(health.body).toContain('webmq'))
  const later = new SseClient(port, '/sse?listen=a', { agent })
  onTestFinished(() => later.destroy())
  const { statusCode, headers } = await later.response()
  expect([statusCode, headers['content-type']]).toEqual([200, 'text/event-stream'])
  await eventually(() => expect(later.body).toContain('event: live'))
  // The limits of plain HTTP no longer hold for it.
  await eventually(() => expect(server.stats().http.connectionCount).toBe(0))
  await server.publish('a', 'later')
  await eventually(() => expect(later.body).toContain('later'))
  expect(server.stats().connectionCount).toBe(1)
  later.destroy()
  await eventually(() => expect(server.stats().connectionCount).toBe(0))
})

it('is refused by a transport that serves none', async () => {
  const { port } = await start({ transport: 'uws' })
  expect(await new SseReader(port, 'listen=a').refusal()).toMatchObject({ status: 501, code: 'E_UNSUPPORTED' })
})

describe('a token in a cookie', () => {
  const cookieOptions = { jwt: { secret: SECRET }, tokenCookie: 'session', origins: ['*', 'null', ORIGIN] }
  const cookie = async () => `a=b; session=${await token()}; c=d`

  it.each([
    ['of a page of this server', { 'sec-fetch-site': 'same-origin' }],
    ['of a client that is no browser', {}],
    ['of an origin that is named', { origin: ORIGIN, 'sec-fetch-site': 'cross-site' }],
  ])('counts in a request %s', async (_what, headers) => {
    const { port } = await start(cookieOptions)
    await SseReader.open(port, 'listen=a', { ...headers, cookie: await cookie() })
  })

  it.each([
    ['of an origin that only `*` allows', { origin: 'https://evil.example' }],
    ['of a sandboxed frame', { origin: 'null' }],
    ['of another site that sends no origin', { 'sec-fetch-site': 'cross-site' }],
    ['of a sibling domain that sends no origin', { 'sec-fetch-site': 'same-site' }],
  ])('does not count in a request %s', async (_what, headers) => {
    const { port } = await start(cookieOptions)
    const reader = new SseReader(port, 'listen=a', { ...headers, cookie: await cookie() })
    expect(await reader.refusal()).toMatchObject({ status: 403, code: 'E_ORIGIN_FORBIDDEN' })
  })

  it('counts for a WebSocket too, and in no request without the option', async () => {
    const { url } = await start(cookieOptions)
    const client = await WebSocketClient.open(url, { headers: { cookie: await cookie() } })
    onTestFinished(() => client.destroy())
    await eventually(() => expect(client.texts[0]).toContain('"auth":"done"'))
    const { port } = await start({ jwt: { secret: SECRET } })
    expect(await new SseReader(port, 'listen=a', { cookie: await cookie() }).refusal()).toMatchObject({ status: 401 })
  })
})

it('can be turned off, and served at another path', async () => {
  const off = await start({ sse: 'off' })
  expect(await new SseReader(off.port, 'listen=a').refusal()).toMatchObject({ status: 404 })
  const moved = await start({ ssePath: '/events' })
  expect(await new SseReader(moved.port, 'listen=a').refusal()).toMatchObject({ status: 404 })
  await eventually(async () => {
    const response = await fetch(`http://127.0.0.1:${moved.port}/events?listen=a`)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    await response.body?.cancel()
  })
})
