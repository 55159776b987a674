import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQClient, WebMQError } from 'webmq-client'
import { history } from 'webmq-client/parts'
import { openStream, readStream } from 'webmq-client/stream'
import { WebSocket } from 'ws'
import { MemoryBroker } from '../../src/adapters/brokers/memory/broker.js'
import type { ServerOptions } from '../../src/index.js'
import { deferred } from '../../src/kernel/base/deferred.js'
import type { OutboundMessage, Reader } from '../../src/kernel/ports/broker.js'
import { API_KEY, ApiServer } from '../api-server.js'

/** A server whose broker counts its messages, each of which takes as long as a test likes. */
async function start(options: ServerOptions = {}) {
  const state = { publishCount: 0, before: (): Promise<void> | undefined => undefined }
  const { publish } = MemoryBroker.prototype
  async function slowly(this: MemoryBroker, message: OutboundMessage) {
    state.publishCount++
    const own = { ...message, payload: new Uint8Array(message.payload) }
    await state.before()
    return publish.call(this, own)
  }
  // Those of brokers between machines answer with a promise.
  vi.spyOn(MemoryBroker.prototype, 'publish').mockImplementation(slowly as unknown as typeof publish)
  onTestFinished(() => void vi.restoreAllMocks())
  const api = await ApiServer.start({ history: ['#=100000'], apiKeys: [], ...options })
  onTestFinished(() => api.server.stop({ drainMs: 0 }))
  return { api, broker: state, url: `${api.url}/streams/a` }
}

/** Moves the clock of the process. */
function moveClock(): { byMs: number } {
  const moved = { byMs: 0 }
  const now = Date.now.bind(Date)
  vi.spyOn(Date, 'now').mockImplementation(() => now() + moved.byMs)
  return moved
}

const TEXT = { 'content-type': 'text/plain' }
const put = (url: string, headers: Record<string, string>, body?: string) =>
  fetch(url, { method: 'PUT', headers: { ...TEXT, ...headers }, ...(body === undefined ? {} : { body }) })

// Symptom: one PUT wrote into the log until the process ended. Cause: its stream was over as soon as it had begun, so it was
// deleted and begun again, without a bound.
describe('a PUT', () => {
  it.each([
    [{ 'stream-ttl': '0' }],
    [{ 'stream-expires-at': '2020-01-01T00:00:00Z' }],
    [{ 'stream-expires-at': new Date(Date.now() - 1_000).toISOString() }],
  ])('is refused when its stream would be over as it begins: %j', async (headers) => {
    const { broker, url } = await start()
    for (const body of [undefined, 'a']) {
      const response = await put(url, headers, body)
      expect([response.status, (await response.json()).code]).toEqual([400, 'E_REQUEST_INVALID'])
    }
    expect(broker.publishCount).toBe(0)
  })

  it('begins one stream, though its messages take longer than the stream lives', async () => {
    const moved = moveClock()
    const { broker, url } = await start()
    broker.before = async () => {
      moved.byMs += 5_000
    }
    expect((await put(url, { 'stream-ttl': '1' })).status).toBe(201)
    expect(broker.publishCount).toBe(1)
    // That one is over, and there is content.
    expect((await put(url, { 'stream-ttl': '1' }, 'a')).status).toBe(201)
    expect(broker.publishCount).toBe(1 + 3)
  })

  it('deletes one stream at most, though others begin streams that are over by the clock of this node', async () => {
    const moved = moveClock()
    const { broker, url } = await start()
    moved.byMs = -60_000
    expect((await put(url, { 'stream-ttl': '1' })).status).toBe(201)
    moved.byMs = 0
    expect((await put(url, { 'stream-ttl': '1' })).status).toBe(201)
    expect(broker.publishCount).toBe(1 + 2)
  })

  it('writes nothing more when its client has left', async () => {
    const { api, broker, url } = await start()
    const written = deferred()
    broker.before = () => written.promise
    const sent = request(url, { method: 'PUT', headers: TEXT }).on('error', () => undefined)
    const closed = new Promise((resolve) => sent.once('close', resolve))
    sent.end('content')
    await vi.waitFor(() => expect(broker.publishCount).toBe(1))
    sent.destroy()
    await closed
    // By then the server has seen it.
    await fetch(`${api.url}/health`)
    const before = broker.publishCount
    broker.before = () => undefined
    written.resolve()
    // Nobody has the stream: its content is missing.
    await vi.waitFor(async () => expect((await put(url, {}, 'other')).status).toBe(201))
    expect(broker.publishCount).toBe(before + 3)
    expect(await (await fetch(url)).text()).toBe('other')
  })
})

// Symptom: while the broker was away, a GET of a stream with a time to live got 503 after the timeout of the broker, and one
// without a time to live got its content. Cause: the read waited until the broker had taken the note that somebody reads.
describe('a GET of a stream with a time to live', () => {
  async function startRead() {
    const moved = moveClock()
    const started = await start()
    expect((await put(started.url, { 'stream-ttl': '60' }, 'content')).status).toBe(201)
    const before = started.broker.publishCount
    const read = async () => {
      const response = await fetch(started.url)
      return `${response.status} ${await response.text()}`
    }
    return { ...started, moved, read, touchCount: () => started.broker.publishCount - before }
  }

  it('does not wait for the note that somebody reads, and notes one read at a time', async () => {
    const { broker, moved, read, touchCount } = await startRead()
    expect(await read()).toBe('200 content')
    expect(touchCount()).toBe(0)
    const taken = deferred()
    broker.before = () => taken.promise
    moved.byMs = 40_000
    for (let count = 0; count < 3; count++) expect(await read()).toBe('200 content')
    expect(touchCount()).toBe(1)
    taken.resolve()
    broker.before = () => undefined
    moved.byMs = 80_000
    await vi.waitFor(async () => expect([await read(), touchCount()]).toEqual(['200 content', 2]))
  })

  it('gets what there is when the note is refused, and the log says so once', async () => {
    const { api, broker, moved, read, touchCount } = await startRead()
    broker.before = () => Promise.reject(new WebMQError('E_BROKER_UNAVAILABLE'))
    moved.byMs = 40_000
    for (let count = 1; count <= 3; count++) {
      expect(await read()).toBe('200 content')
      await vi.waitFor(() => expect(touchCount()).toBe(count))
    }
    const lines = api.log.lines.filter(({ message }) => message?.includes('not noted'))
    expect(lines).toMatchObject([{ level: 'warn', fields: { err: { code: 'E_BROKER_UNAVAILABLE' }, key: 'a' } }])
  })
})

/** A stream of many messages, too large to become one of the log. */
async function startLong(options: ServerOptions = {}) {
  const started = await start({ maxPayloadBytes: 10_000, historyMaxMessages: 100_000, ...options })
  const writer = await started.api.server.stream('a')
  for (let index = 0; index < 1_000; index++) await writer.append(`${index}`.padEnd(40, '.'))
  await writer.end()
  return started
}

// Symptom: a request of 56 bytes cost 100 ms, and any number of them was answered. Cause: the log was read without a reader,
// so nobody paid.
describe('who makes the server read a long stream', () => {
  // The stream is kept for the next one, who pays little: so one look at it is all that there is.
  const burst = { workPerSecond: 1_000, workBurst: 1_000 }

  it.each([
    ['HEAD', '/streams/a'],
    ['GET', '/streams/a?offset=now'],
    ['GET', '/streams/a?offset=-1&live=long-poll'],
    ['DELETE', '/streams/a'],
    ['GET', '/api/streams?key=a'],
  ])('pays for it, and is refused with 429 when the budget is gone: %s %s', async (method, path) => {
    const { api } = await startLong(burst)
    // Nothing is paid back meanwhile, however slow the machine is.
    const now = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(now)
    const ask = async () => {
      const response = await fetch(api.url + path, { method })
      await response.arrayBuffer()
      return response
    }
    // It overdraws the budget once.
    const statuses: number[] = []
    let last = await ask()
    for (let count = 1; count < 4 && last.status !== 429; count++) {
      statuses.push(last.status)
      last = await ask()
    }
    expect(statuses.length).toBeLessThanOrEqual(2)
    expect(statuses[0]).toBeLessThan(300)
    expect(last.status).toBe(429)
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it('pays at every door', async () => {
    const { api, url } = await startLong({ retain: ['r.#'] })
    const reads: (Reader | undefined)[] = []
    const { read } = MemoryBroker.prototype
    vi.spyOn(MemoryBroker.prototype, 'read').mockImplementation(function (this: MemoryBroker, range, patterns, reader) {
      reads.push(reader)
      return read.call(this, range, patterns, reader)
    })
    const client = new WebMQClient({ url: api.webSocketUrl, WebSocket })
    onTestFinished(() => client.close())
    await client.connect()
    const asked = async (path: string, init: RequestInit = {}) => void (await (await fetch(path, init)).arrayBuffer())
    const json = { 'content-type': 'application/json' }
    const startOf = (key: string) => JSON.stringify({ key, stream: 's', sequence: 0, kind: 'start' })
    const post = (path: string, headers: Record<string, string>, body: string) =>
      asked(api.url + path, { method: 'POST', headers, body })
    const doors: Record<string, () => Promise<unknown>> = {
      head: () => asked(url, { method: 'HEAD' }),
      get: () => asked(url),
      put: () => asked(`${api.url}/streams/r.b`, { method: 'PUT' }),
      post: () => asked(`${api.url}/streams/c`, { method: 'POST', body: 'a', headers: TEXT }),
      delete: () => asked(`${api.url}/streams/d`, { method: 'DELETE' }),
      api: () => asked(`${api.url}/api/streams?key=a`),
      apiStart: () => post('/api/streams', json, startOf('e')),
      apiBody: () => post('/api/streams?key=f', TEXT, 'text'),
      apiHistory: () => asked(`${api.url}/api/history?key=a`),
      sseStream: () => asked(`${api.url}/sse?stream=a`),
      read: () => readStream('a', { client }).text(),
      write: async () => await (await openStream('g', { client })).end(),
      history: () => history('a', { client, limit: 10 }),
      sseListen: async () => await (await fetch(`${api.url}/sse?listen=a&last=10`)).body?.cancel(),
    }
    for (const [name, door] of Object.entries(doors)) {
      reads.length = 0
      await door()
      await vi.waitFor(() => expect([name, reads.length > 0]).toEqual([name, true]))
      expect([name, reads.filter((reader) => reader?.meter === undefined)]).toEqual([name, []])
    }
  })
})

describe('a JSON body', () => {
  const json = { 'content-type': 'application/json' }
  const statusOf = async (url: string, method: string, body: string) =>
    (await fetch(url, { method, headers: json, body })).status

  // Symptom: 250 KB of numbers took 55 ms of one turn, though the stream was full. Cause: a regular expression per token, before
  // the size was looked at.
  it('has as many values, within each other too, as one of the API', async () => {
    const { url } = await start()
    expect(await statusOf(url, 'PUT', `[${'1,'.repeat(65_536)}1]`)).toBe(400)
    expect(await statusOf(url, 'PUT', '['.repeat(257) + ']'.repeat(257))).toBe(400)
    expect(await statusOf(url, 'PUT', `[${'1,'.repeat(65_000)}1]`)).toBe(201)
    expect(await statusOf(url, 'POST', `[${'1,'.repeat(65_536)}1]`)).toBe(400)
    expect(await statusOf(url, 'POST', '['.repeat(256) + ']'.repeat(256))).toBe(204)
    expect(((await (await fetch(url)).json()) as unknown[]).length).toBe(65_002)
  })

  it('is not parsed when the stream is full', async () => {
    const { url } = await start({ maxStreamBytes: 1_024 })
    await fetch(url, { method: 'PUT', headers: json })
    const parse = vi.spyOn(JSON, 'parse')
    expect(await statusOf(url, 'POST', `["${'x'.repeat(2_000)}"]`)).toBe(413)
    expect(parse.mock.calls.filter(([text]) => text.length > 1_000)).toEqual([])
  })

  it('costs by its values: parsing them takes longer than reading them', async () => {
    const { api, url } = await start({ workPerSecond: 1_000, workBurst: 14_000 })
    const now = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(now)
    expect(await statusOf(url, 'PUT', `[${'1,'.repeat(65_000)}1]`)).toBe(201)
    expect((await fetch(`${api.url}/streams/b`)).status).toBe(429)
  })
})

describe('a request', () => {
  // Symptom: a redirect to a foreign host. Cause: the address was put together of what the request said.
  it('is told the path of its stream, whatever it says of its host', async () => {
    const { api } = await start({ apiKeys: [API_KEY] })
    const headers = {
      host: 'evil.example/x',
      'x-forwarded-proto': 'https',
      authorization: `Bearer ${API_KEY}`,
    }
    const sent = request(`${api.url}/streams/a.%C3%A9`, { method: 'PUT', headers })
    const [response] = (await once(sent.end(), 'response')) as [IncomingMessage]
    response.resume()
    expect([response.statusCode, response.headers.location]).toEqual([201, '/streams/a.%C3%A9'])
  })

  // Symptom: readers got bytes that nobody had decoded. Cause: the header was not looked at, as it is at `/api`.
  it('is refused when its body is compressed', async () => {
    const { url } = await start()
    const encoded = { ...TEXT, 'content-encoding': 'gzip' }
    expect((await put(url, encoded, 'a')).status).toBe(415)
    expect((await put(url, { 'content-encoding': 'identity' }, 'a')).status).toBe(201)
    expect((await fetch(url, { method: 'POST', headers: encoded, body: 'b' })).status).toBe(415)
  })
})

// Symptom: nobody could begin a stream any more. Cause: the streams of one client had filled the table of the node.
it('leaves room for others, however many streams a client makes', async () => {
  const { api } = await start({ maxStreamsPerNode: 10, maxStreamsPerUser: 2 })
  for (let index = 0; index < 30; index++)
    expect((await put(`${api.url}/streams/of.${index}`, {}, 'a')).status).toBe(201)
  const writers = await Promise.all(Array.from({ length: 10 }, (_, index) => api.server.stream(`own.${index}`)))
  await Promise.all(writers.map((writer) => writer.append('b')))
  expect((await fetch(`${api.url}/streams/of.7`)).status).toBe(507)
  await writers[0]?.end()
  expect(await (await fetch(`${api.url}/streams/of.7`)).text()).toBe('a')
  await Promise.all(writers.slice(1).map((writer) => writer.end()))
})
