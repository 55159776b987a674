import { once } from 'node:events'
import { type ClientRequest, request as createRequest, type IncomingMessage } from 'node:http'
import { afterAll, describe, expect, it, type TestContext, vi } from 'vitest'
import { firstAndInTurn } from '../../../test/in-turn.js'
import type { ServerOptions } from '../src/index.js'
import { API_KEY, ApiServer, SECRET, tokenOf } from './api-server.js'

const KEY = 'answer.7'

const senders: Sender[] = []

const TRANSPORTS = firstAndInTurn(['native', 'ws', 'uws'] as const)
/** They mostly wait. */
const SIDE_BY_SIDE = { concurrent: true }

afterAll(() => {
  for (const { request } of senders) request.destroy()
})

async function start({ onTestFinished }: TestContext, options: ServerOptions = {}): Promise<ApiServer> {
  const api = await ApiServer.start({ history: ['#=200000'], ...options })
  onTestFinished(() => api.server.stop({ drainMs: 0 }))
  return api
}

interface Answered {
  readonly status: number | undefined
  readonly json: Record<string, unknown>
}

/** A request whose body is sent piece by piece. */
class Sender {
  readonly request: ClientRequest
  readonly answer: Promise<Answered>
  #answered = false

  constructor(port: number, path = `/api/streams?key=${KEY}`, headers: Record<string, string> = {}) {
    this.request = createRequest({
      port,
      path,
      method: 'POST',
      headers: { 'content-type': 'text/plain', authorization: `Bearer ${API_KEY}`, ...headers },
    })
    senders.push(this)
    this.answer = this.#read()
    this.answer.catch(() => undefined)
    // The server answers before the body has ended, and closes.
    this.request.on('error', () => undefined)
    this.request.flushHeaders()
  }

  get isAnswered(): boolean {
    return this.#answered
  }

  write(piece: string | Uint8Array): void {
    this.request.write(piece)
  }

  async #read(): Promise<Answered> {
    const [response] = (await once(this.request, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    this.#answered = true
    return { status: response.statusCode, json: JSON.parse(text) as Record<string, unknown> }
  }
}

// Symptom: the OpenAPI document allowed a request that was answered 400. Cause: the query of a route has one schema, whatever the
// type of its body is, and 422 is what a request of the right shape is answered.
it('refuses meta beside a body of JSON, where it is the payload of start, as a request of the right shape', async (context) => {
  const api = await start(context)
  const body = { key: KEY, stream: 'Zx0a', sequence: 0, kind: 'start', payload: 0 }
  expect(await api.ask('/api/streams?meta=0', { method: 'POST', body })).toMatchObject({
    status: 422,
    json: { code: 'E_PAYLOAD_INVALID' },
  })
})

async function read(api: ApiServer, key = KEY) {
  return (await api.ask(`/api/streams?key=${key}`)).json
}

async function untilText(api: ApiServer, text: string, key = KEY): Promise<void> {
  await vi.waitFor(async () => expect((await read(api, key)).text).toBe(text), { timeout: 20_000, interval: 20 })
}

describe.each(TRANSPORTS)('a stream that a body writes, on the %s transport', SIDE_BY_SIDE, (transport) => {
  it('grows while the body arrives, whose characters may be torn, and ends with it', async (context) => {
    const api = await start(context, { transport })
    const sender = new Sender(api.port, `/api/streams?key=${KEY}&meta=${encodeURIComponent('{"of":"m"}')}`)
    const text = '\ufeffOnce \u{1f642} upon'
    const bytes = Buffer.from(text)
    sender.write(bytes.subarray(0, 9))
    await untilText(api, '\ufeffOnce ')
    sender.write(bytes.subarray(9, 11))
    sender.write(bytes.subarray(11))
    await untilText(api, text)
    expect(await read(api)).toMatchObject({ status: 'active', meta: { of: 'm' } })
    expect(sender.isAnswered).toBe(false)
    sender.request.end(' a time')
    const { status, json } = await sender.answer
    expect({ status, json }).toMatchObject({ status: 200, json: { status: 'end', position: expect.any(String) } })
    expect(await read(api)).toEqual({
      stream: json.stream,
      sequence: expect.any(Number),
      status: 'end',
      meta: { of: 'm' },
      text: `${text} a time`,
      position: expect.any(String),
    })
  })

  it('takes bytes, and gives them back as they are', async (context) => {
    const api = await start(context, { transport })
    const sender = new Sender(api.port, undefined, { 'content-type': 'application/octet-stream' })
    sender.write(Uint8Array.of(0, 255))
    sender.request.end(Uint8Array.of(10))
    expect((await sender.answer).json).toMatchObject({ status: 'end' })
    expect(await read(api)).toMatchObject({ base64: 'AP8K' })
    const headers = { authorization: `Bearer ${API_KEY}`, accept: 'application/octet-stream' }
    const raw = await fetch(`${api.url}/api/streams?key=${KEY}`, { headers })
    expect(raw.headers.get('webmq-status')).toBe('end')
    expect(new Uint8Array(await raw.arrayBuffer())).toEqual(Uint8Array.of(0, 255, 10))
    expect((await api.ask(`/api/streams?key=${KEY}`, { headers: { accept: 'text/plain' } })).status).toBe(406)
  })

  it('is answered early when somebody stops it, and takes no more', async (context) => {
    const api = await start(context, { transport })
    const sender = new Sender(api.port)
    sender.write('Once upon')
    await untilText(api, 'Once upon')
    await api.server.request(KEY, { type: 'stop' })
    const { status, json } = await sender.answer
    expect({ status, json }).toMatchObject({ status: 200, json: { status: 'stop' } })
    sender.write(' a time')
    await once(sender.request, 'close')
    expect(await read(api)).toMatchObject({ status: 'stop', text: 'Once upon' })
    await expect(api.server.request(KEY, { type: 'stop' })).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
  })

  it('fails when its client goes away', async (context) => {
    const api = await start(context, { transport, streamLeaseMs: 600_000 })
    const sender = new Sender(api.port)
    sender.write('Once')
    await untilText(api, 'Once')
    sender.request.destroy()
    await vi.waitFor(async () =>
      expect(await read(api)).toMatchObject({ status: 'fail', text: 'Once', result: { code: 'E_DISCONNECTED' } }),
    )
    await vi.waitFor(() => expect(api.server.stats().http.connectionCount).toBeLessThan(3))
  })

  it('fails when nothing comes for too long, though the server says that it is alive', async (context) => {
    const api = await start(context, { transport, streamBodyTimeoutMs: 3_000, streamLeaseMs: 1_000 })
    const sender = new Sender(api.port)
    sender.write('Once')
    const { status, json } = await sender.answer
    expect([status, json.code]).toEqual([408, 'E_MESSAGE_TIMEOUT'])
    expect(await read(api)).toMatchObject({ status: 'fail', text: 'Once', result: { code: 'E_MESSAGE_TIMEOUT' } })
    await once(sender.request, 'close')
  })

  // uWebSockets.js ends slow bodies after some 12 seconds, if nobody asks it for more time.
  it.runIf(transport === 'uws')(
    'lives as long as its body, however slowly that comes',
    async (context) => {
      const api = await start(context, { transport })
      const sender = new Sender(api.port)
      for (let index = 0; index < 14; index++) {
        sender.write('.')
        await new Promise((resolve) => setTimeout(resolve, 1_000))
      }
      sender.request.end()
      expect((await sender.answer).json).toMatchObject({ status: 'end' })
      expect(await read(api)).toMatchObject({ status: 'end', text: '.'.repeat(14) })
    },
    60_000,
  )

  it('takes single bytes at full speed, in fewer messages', async (context) => {
    const api = await start(context, { transport })
    const sender = new Sender(api.port)
    for (let index = 0; index < 30_000; index++) {
      if (!sender.request.write(String(index % 10))) await once(sender.request, 'drain')
    }
    sender.request.end()
    expect((await sender.answer).json).toMatchObject({ status: 'end' })
    const { text, sequence } = await read(api)
    expect(text).toBe(Array.from({ length: 30_000 }, (_, index) => index % 10).join(''))
    expect(sequence).toBeLessThan(30_000)
  })

  it.for([
    ['is larger than a stream may be', { maxStreamBytes: 10_000 }, 'x'.repeat(50_000), 507, 'E_STREAM_LIMIT'],
    ['is no UTF-8', {}, Uint8Array.of(0x61, 0xff), 422, 'E_PAYLOAD_INVALID'],
  ] as const)('fails at once when the body %s', async ([, options, body, status, code], context) => {
    const api = await start(context, { transport, streamLeaseMs: 600_000, ...options })
    const sender = new Sender(api.port)
    sender.write(body)
    const answer = await sender.answer
    expect([answer.status, answer.json.code]).toEqual([status, code])
    expect(await read(api)).toMatchObject({ status: 'fail', result: { code } })
    expect((await read(api)).isCut).toBeUndefined()
    await once(sender.request, 'close')
  })

  it('is refused before its body is sent while another one has the key', async (context) => {
    const api = await start(context, { transport })
    await api.server.stream(KEY)
    const sender = new Sender(api.port, undefined, { expect: '100-continue' })
    const { status, json } = await sender.answer
    expect([status, json.code]).toEqual([409, 'E_STREAM_BUSY'])
  })
})

describe('a stream over HTTP', SIDE_BY_SIDE, () => {
  const write = (stream: string, sequence: number, kind: string, payload?: unknown) => ({
    body: { key: KEY, stream, sequence, kind, ...(payload === undefined ? {} : { payload }) },
  })

  it('is written by single posts too, of which a second one is a duplicate', async (context) => {
    const api = await start(context)
    const answers = []
    for (const [sequence, kind, payload] of [
      [0, 'start', { of: 'm' }],
      [1, 'append', 'Once'],
      [1, 'append', 'Once'],
      [1, 'beat'],
      [2, 'append', ' upon'],
      [3, 'end', 7],
      [3, 'end', 7],
    ] as const) {
      const { status, json } = await api.ask('/api/streams', write('one', sequence, kind, payload))
      answers.push([status, json.duplicate, typeof json.position])
    }
    expect(answers).toEqual([
      [200, false, 'string'],
      [200, false, 'string'],
      [200, true, 'undefined'],
      [200, false, 'undefined'],
      [200, false, 'string'],
      [200, false, 'string'],
      [200, true, 'undefined'],
    ])
    expect(await read(api)).toMatchObject({ stream: 'one', status: 'end', text: 'Once upon', result: 7 })
    const { json } = await api.ask(`/api/history?key=${KEY}`)
    expect(json.messages).toMatchObject([{ stream: { id: 'one', sequence: 3, kind: 'text' }, payload: 'Once upon' }])
  })

  it('is stopped while single posts write it: the next one is refused', async (context) => {
    const api = await start(context)
    expect((await api.ask('/api/streams', write('one', 0, 'start'))).status).toBe(200)
    expect((await api.ask('/api/streams', write('one', 0, 'start'))).json).toMatchObject({ duplicate: true })
    expect((await api.ask('/api/streams', write('one', 1, 'append', 'Once'))).status).toBe(200)
    const stop = (stream: string) => api.server.request(KEY, { type: 'stop', stream })
    await expect(stop('two')).rejects.toMatchObject({ code: 'E_STREAM_ENDED' })
    await expect(api.server.request(KEY, { type: 'message' })).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    expect(await Promise.all([stop('one'), stop('one')])).toEqual([null, null])
    expect(await read(api)).toMatchObject({ stream: 'one', status: 'stop', text: 'Once' })
    const { status, json } = await api.ask('/api/streams', write('one', 2, 'append', ' upon'))
    expect([status, json.code, json.message]).toEqual([409, 'E_STREAM_ENDED', expect.stringContaining('stop')])
    await expect(stop('one')).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
    // The next stream of the key has its own answers, until it ends.
    expect((await api.ask('/api/streams', write('two', 0, 'start'))).status).toBe(200)
    await expect(stop('one')).rejects.toMatchObject({ code: 'E_STREAM_ENDED' })
    expect((await api.ask('/api/streams', write('two', 1, 'end'))).status).toBe(200)
    await expect(stop('two')).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
  })

  it('is refused with the code of what is wrong', async (context) => {
    const api = await start(context, { maxStreamBytes: 1_024, history: ['answer.#=100'] })
    const codes = []
    for (const request of [
      write('one', 1, 'start'),
      write('one', 0, 'start', 1),
      write('two', 0, 'start'),
      write('one', 1, 'append', 1),
      write('one', 1, 'append', 'x'.repeat(2_000)),
      write('one', 1, 'fail', { message: 'enough' }),
      write('one', 2, 'append', 'late'),
      write('o n e', 0, 'start'),
      write('one', 0, 'text'),
      { body: { ...write('one', 0, 'start').body, key: 'other' } },
      { body: 'x', headers: { 'content-type': 'text/plain; charset=latin1' } },
      { body: 'x', headers: { 'content-type': 'text/plain' } },
    ]) {
      const { status, json } = await api.ask('/api/streams', request)
      codes.push(`${status} ${json.code ?? 'ok'}`)
    }
    expect(codes).toEqual([
      '409 E_STREAM_SEQUENCE',
      '200 ok',
      '409 E_STREAM_BUSY',
      '422 E_PAYLOAD_INVALID',
      '507 E_STREAM_LIMIT',
      '200 ok',
      '409 E_STREAM_ENDED',
      '400 E_REQUEST_INVALID',
      '400 E_REQUEST_INVALID',
      '501 E_UNSUPPORTED',
      '415 E_REQUEST_INVALID',
      '422 E_KEY_INVALID',
    ])
    const raw = await fetch(`${api.url}/api/streams?key=${KEY}`, {
      headers: { authorization: `Bearer ${API_KEY}`, accept: 'text/plain' },
    })
    expect([raw.headers.get('webmq-stream'), raw.headers.get('webmq-status'), await raw.text()]).toEqual([
      'one',
      'fail',
      '',
    ])
  })

  it('needs the grants, counts for its user, and ends with the token', async (context) => {
    const api = await start(context, { jwt: { secret: SECRET }, maxStreamsPerUser: 1 })
    const bearer = await tokenOf('ann', ['mine.#'])
    const codeOf = async (path: string, request: object = {}) => {
      const { status, json } = await api.ask(path, { bearer, ...request })
      return `${status} ${json.code ?? 'ok'}`
    }
    expect(await codeOf(`/api/streams?key=${KEY}`)).toBe('403 E_FORBIDDEN')
    expect(await codeOf('/api/streams', write('one', 0, 'start'))).toBe('403 E_FORBIDDEN')
    const flow = { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } }
    expect(await codeOf(`/api/streams?key=${KEY}`, flow)).toBe('403 E_FORBIDDEN')
    const authorization = `Bearer ${await tokenOf('ann', ['mine.#'], { jti: 'stolen' })}`
    const sender = new Sender(api.port, '/api/streams?key=mine.1', { authorization })
    sender.write('Once')
    await untilText(api, 'Once', 'mine.1')
    expect(await codeOf('/api/streams?key=mine.2', flow)).toBe('507 E_STREAM_LIMIT')
    await api.ask('/api/revoke', { body: { tokenId: 'stolen', until: 4_102_444_800 } })
    const { status, json } = await sender.answer
    expect([status, json.code]).toEqual([401, 'E_TOKEN_REVOKED'])
    expect(await read(api, 'mine.1')).toMatchObject({ status: 'fail', text: 'Once' })
    expect(await codeOf('/api/streams?key=mine.2', flow)).toBe('200 ok')
  })

  it('waits for its place when its user publishes too fast, and loses nothing', async (context) => {
    const api = await start(context, { maxPublishesPerSecondPerUser: 20, publishBurstMs: 100, jwt: { secret: SECRET } })
    const authorization = `Bearer ${await tokenOf('ann')}`
    const sender = new Sender(api.port, undefined, { authorization })
    for (let index = 0; index < 100; index++) {
      sender.write(`${index} `)
      await new Promise((resolve) => setImmediate(resolve))
    }
    sender.request.end()
    expect((await sender.answer).json).toMatchObject({ status: 'end' })
    expect((await read(api)).text).toBe(Array.from({ length: 100 }, (_, index) => `${index} `).join(''))
  })

  it('is read no faster than its client may cause work', async (context) => {
    const api = await start(context, { workPerSecond: 1_000, workBurst: 1_000, jwt: { secret: SECRET } })
    const authorization = `Bearer ${await tokenOf('ann')}`
    const headers = { authorization, 'content-type': 'application/octet-stream' }
    const beginMs = performance.now()
    const sender = new Sender(api.port, undefined, headers)
    const body = Buffer.alloc(400_000, 'x')
    sender.request.end(body)
    expect((await sender.answer).json).toMatchObject({ status: 'end' })
    // 4,000 units for its bytes, and a burst of 1,000.
    expect(performance.now() - beginMs).toBeGreaterThan(2_000)
    expect(Buffer.from(String((await read(api)).base64), 'base64').equals(body)).toBe(true)
  })

  // Symptom: a client that wrote a stream in single bytes kept a node busy, and paid for its bytes alone.
  it('pays for each of the pieces that its bytes come in', async (context) => {
    const api = await start(context, { workPerSecond: 1_000, workBurst: 1_000, jwt: { secret: SECRET } })
    const authorization = `Bearer ${await tokenOf('ann')}`
    const sender = new Sender(api.port, undefined, { authorization, 'content-type': 'application/octet-stream' })
    const beginMs = performance.now()
    for (let index = 0; index < 600; index++) sender.write('x')
    sender.request.end()
    expect((await sender.answer).json).toMatchObject({ status: 'end' })
    // 5 units for each piece, and a burst of 1,000.
    expect(performance.now() - beginMs).toBeGreaterThan(1_500)
  })

  it('is answered when another request has ended its stream, and its connection counts until then', async (context) => {
    const api = await start(context, { jwt: { secret: SECRET }, maxStreamsPerUser: 1, streamLeaseMs: 18_000 })
    const bearer = await tokenOf('ann')
    const senders = []
    for (const key of ['a', 'b', 'c']) {
      const sender = new Sender(api.port, `/api/streams?key=${key}`, { authorization: `Bearer ${bearer}` })
      senders.push(sender)
      if (key === 'c') break
      sender.write('x')
      await untilText(api, 'x', key)
      const { stream } = await read(api, key)
      const end = { key, stream, sequence: 2, kind: 'end' }
      expect((await api.ask('/api/streams', { bearer, body: end })).status).toBe(200)
    }
    const answers = (await Promise.all(senders.map(({ answer }) => answer))).map(({ json }) => json.code)
    expect(answers).toEqual(['E_STREAM_ENDED', 'E_STREAM_ENDED', 'E_STREAM_LIMIT'])
  })

  it('does not hold up a server that stops', async (context) => {
    const api = await start(context)
    const sender = new Sender(api.port)
    sender.write('Once')
    await untilText(api, 'Once')
    await api.server.stop({ drainMs: 0 })
    expect((await sender.answer).status).toBe(503)
  })
})
