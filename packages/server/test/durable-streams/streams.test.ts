import { connect as connectTo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { DurableStream, stream } from '@durable-streams/client'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { openStream, readStream } from 'webmq-client/stream'
import { WebSocket } from 'ws'
import type { ServerOptions } from '../../src/index.js'
import { ApiServer, SECRET, tokenOf } from '../api-server.js'

async function start(options: ServerOptions = {}): Promise<ApiServer> {
  const api = await ApiServer.start({ history: ['#=10000,1d'], apiKeys: [], ...options })
  onTestFinished(() => api.server.stop({ drainMs: 0 }))
  return api
}

function connect(api: ApiServer) {
  const client = new WebMQClient({ url: api.webSocketUrl, WebSocket })
  onTestFinished(() => client.close())
  return client
}

const TEXT = { 'content-type': 'text/plain' }
const codeOf = async (response: Response) => `${response.status} ${(await response.json()).code}`

describe.each(['native', 'ws', 'uws'] as const)('streams at /streams over %s', (transport) => {
  it('are read by their client while one of WebMQ writes, from the first byte to the end', async () => {
    const api = await start({ transport })
    const writer = await openStream('answer.7', { client: connect(api) })
    await writer.append('Once ')
    const texts = { sse: '', 'long-poll': '' }
    const readers = (['sse', 'long-poll'] as const).map(async (live) => {
      const response = await stream({ url: `${api.url}/streams/answer.7`, live, offset: '-1' })
      const reader = response.textStream().getReader()
      for (let next = await reader.read(); !next.done; next = await reader.read()) texts[live] += next.value
    })
    await vi.waitFor(() => expect(texts).toEqual({ sse: 'Once ', 'long-poll': 'Once ' }))
    await writer.append('upon \ud83d')
    await writer.append('\ude42')
    await vi.waitFor(() => expect(texts).toEqual({ sse: 'Once upon 🙂', 'long-poll': 'Once upon 🙂' }))
    await writer.append(' a time')
    await writer.end({ words: 4 })
    await Promise.all(readers)
    expect(texts).toEqual({ sse: 'Once upon 🙂 a time', 'long-poll': 'Once upon 🙂 a time' })
    const { headers } = await fetch(`${api.url}/streams/answer.7`, { method: 'HEAD' })
    expect(headers.get('stream-closed')).toBe('true')
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
  })

  it('are written by their client, and read by one of WebMQ', async () => {
    const api = await start({ transport })
    const reader = readStream('log', { client: connect(api) })
    const url = `${api.url}/streams/log`
    const log = await DurableStream.create({ url, contentType: 'application/octet-stream' })
    await log.append(Uint8Array.of(0, 255))
    await vi.waitFor(() => expect(reader.content).toEqual(Uint8Array.of(0, 255)))
    await log.append(Uint8Array.of(7))
    await log.close({ body: Uint8Array.of(8, 9) })
    expect(await reader.bytes()).toEqual(Uint8Array.of(0, 255, 7, 8, 9))
    expect(reader.status).toBe('end')
    expect(reader.meta).toEqual({ contentType: 'application/octet-stream' })
    // The next one of the key.
    await log.delete()
    const next = await DurableStream.create({ url, contentType: 'application/json' })
    await next.append('{"a":1}')
    await vi.waitFor(() => expect(Buffer.from(reader.content as Uint8Array).toString()).toBe('{"a":1}\n'))
    await next.delete()
    await vi.waitFor(() => expect(reader.status).toBe('lost'))
  })

  it('end their answers when the server stops', async () => {
    const api = await start({ transport })
    await fetch(`${api.url}/streams/a`, { method: 'PUT', headers: TEXT, body: 'a' })
    const response = await fetch(`${api.url}/streams/a?offset=-1&live=sse`)
    const reader = response.body?.getReader()
    await reader?.read()
    const stopped = api.server.stop({ drainMs: 0 })
    const rest = async () => {
      for (;;) if ((await reader?.read())?.done !== false) return 'ended'
    }
    expect(['ended', 'cut']).toContain(await rest().catch(() => 'cut'))
    await stopped
  })
})

describe('streams at /streams', () => {
  it('tell a client that its body is too large, and let it send all of it', async () => {
    const api = await start()
    const url = `${api.url}/streams/a`
    await fetch(url, { method: 'PUT', headers: TEXT })
    const part = Buffer.alloc(1_048_576)
    const socket = connectTo(api.port, '127.0.0.1').on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.write(
      `POST /streams/a HTTP/1.1\r\nhost: 127.0.0.1:${api.port}\r\ncontent-type: text/plain\r\ncontent-length: ${3 * part.length}\r\n\r\n`,
    )
    for (let sent = 0; sent < 3; sent++) {
      await sleep(100)
      socket.write(part)
    }
    await expect.poll(() => answer).toContain('E_PAYLOAD_TOO_LARGE')
    // A connection that had ended would have taken the answer along.
    socket.write(`HEAD /streams/a HTTP/1.1\r\nhost: 127.0.0.1:${api.port}\r\n\r\n`)
    await expect.poll(() => answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200'])
  })

  it('tell that a writer was lost', async () => {
    const api = await start({ streamLeaseMs: 1_000 })
    const client = new WebMQClient({ url: api.webSocketUrl, WebSocket })
    const writer = await openStream('a', { client })
    await writer.append('one')
    const sse = await fetch(`${api.url}/streams/a?offset=-1&live=sse`)
    await client.close()
    expect(await sse.text()).toContain('"streamClosed":true,"streamStatus":"lost"')
    const response = await fetch(`${api.url}/streams/a`)
    expect(response.headers.get('stream-status')).toBe('lost')
    expect(await response.text()).toBe('one')
  })

  it('are refused when the log no longer has their beginning, whoever asks', async () => {
    // Too large to be one message.
    const api = await start({ historyMaxMessages: 3, maxPayloadBytes: 100 })
    const url = `${api.url}/streams/a`
    await fetch(url, { method: 'PUT', headers: TEXT })
    const offset = (await fetch(url, { method: 'HEAD' })).headers.get('stream-next-offset')
    for (const body of ['1', '2', '3']) await fetch(url, { method: 'POST', headers: TEXT, body })
    // A node that folds the log anew.
    await fetch(url, { method: 'POST', headers: { 'stream-closed': 'true' } })
    for (const query of ['', '?offset=-1', `?offset=${offset}`, `?offset=${offset}&live=sse`, '?offset=now'])
      expect(await codeOf(await fetch(url + query))).toBe('410 E_STREAM_GONE')
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(410)
    expect(await codeOf(await fetch(url, { method: 'PUT', headers: TEXT }))).toBe('410 E_STREAM_GONE')
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(204)
    expect((await fetch(url, { method: 'PUT', headers: TEXT })).status).toBe(201)
    expect(await codeOf(await fetch(`${url}?offset=${offset}`))).toBe('410 E_STREAM_GONE')
    expect(await codeOf(await fetch(`${api.url}/streams/forgotten?offset=${offset}`))).toBe('410 E_STREAM_GONE')
  })

  it('keep content and producers when the log has dropped their first messages, and leave nothing when they are deleted', async () => {
    const api = await start({ historyMaxMessages: 40, retain: ['a'], retainMaxKeys: 5 })
    const url = `${api.url}/streams/a`
    const append = (sequence: number, length: number, close = {}) => {
      const producer = { 'producer-id': 'p', 'producer-epoch': '1', 'producer-seq': `${sequence}` }
      const body = `${sequence}`.padEnd(length, '.')
      return fetch(url, { method: 'POST', headers: { ...TEXT, ...producer, ...close }, body })
    }
    await fetch(url, { method: 'PUT', headers: TEXT })
    for (let sequence = 0; sequence < 60; sequence++) expect((await append(sequence, 1_500)).ok).toBe(true)
    const fill = async () => {
      for (let index = 0; index < 30; index++) await api.server.publish('other', index)
    }
    await fill()
    const whole = Array.from({ length: 60 }, (_, sequence) => `${sequence}`.padEnd(1_500, '.')).join('')
    expect(await (await fetch(`${url}?offset=-1`)).text()).toBe(whole)
    expect((await append(60, 3, { 'stream-closed': 'true' })).ok).toBe(true)
    const shown = async () => (await api.server.history('a')).messages.map(({ stream }) => stream?.split(':')[2])
    await vi.waitFor(async () => expect(await shown()).toEqual(['text']))
    await fill()
    await fill()
    expect(await (await fetch(`${url}?offset=-1`)).text()).toBe(`${whole}60.`)
    // A retry of the last one.
    expect((await append(60, 3, { 'stream-closed': 'true' })).status).toBe(204)
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(204)
    expect(await shown()).toEqual([])
    const missing = await fetch(`${url}?offset=-1`)
    expect([missing.status, await missing.text()]).toEqual([
      404,
      expect.stringContaining('"there is no stream at this key"'),
    ])
    await fill()
    await fill()
    expect((await fetch(`${url}?offset=-1`)).status).toBe(404)
  })

  it('outlive their first messages: offsets, producers and bytes are those from before', async () => {
    const api = await start({ history: ['#=100,1d'], maxStreamsPerNode: 1 })
    const url = `${api.url}/streams/a`
    await fetch(url, { method: 'PUT', headers: TEXT })
    const producer = (seq: number) => ({ 'producer-id': 'p', 'producer-epoch': '0', 'producer-seq': `${seq}` })
    const post = (seq: number, body: string) =>
      fetch(url, { method: 'POST', headers: { ...TEXT, ...producer(seq) }, body })
    const parts = Array.from({ length: 150 }, (_, seq) => `${seq};`.padEnd(1_000, '.'))
    const offsets: (string | null)[] = []
    for (const [seq, part] of parts.entries()) offsets.push((await post(seq, part)).headers.get('stream-next-offset'))
    // The node forgets it, and folds the log again.
    await fetch(`${api.url}/streams/b`, { method: 'PUT' })
    expect(await (await fetch(url)).text()).toBe(parts.join(''))
    for (const at of [0, 20, 100, 148])
      expect(await (await fetch(`${url}?offset=${offsets[at]}`)).text()).toBe(parts.slice(at + 1).join(''))
    expect((await post(149, 'again')).status).toBe(204)
    expect((await post(150, 'more')).status).toBe(200)
  })

  it('know what a reader has read', async () => {
    const api = await start()
    const url = `${api.url}/streams/a`
    await fetch(url, { method: 'PUT', headers: TEXT, body: 'abc' })
    const offset = (await fetch(url, { method: 'HEAD' })).headers.get('stream-next-offset') ?? ''
    // As after a failover of the broker, which has lost a message before another one came.
    const other = offset.slice(0, -1) + (offset.endsWith('0') ? '1' : '0')
    expect(await codeOf(await fetch(`${url}?offset=${other}`))).toBe('410 E_STREAM_GONE')
    const beyond = offset.replace(/0003/, '0004')
    expect(await codeOf(await fetch(`${url}?offset=${beyond}`))).toBe('410 E_STREAM_GONE')
    await fetch(url, { method: 'POST', headers: { 'stream-closed': 'true' } })
    expect(await codeOf(await fetch(`${url}?offset=${beyond}`))).toBe('410 E_STREAM_GONE')
  })

  it('are for those with grants', async () => {
    const api = await start({ jwt: { secret: SECRET } })
    const bearer = async (keys: string[]) => ({ ...TEXT, authorization: `Bearer ${await tokenOf('ann', keys)}` })
    const [own, others] = [await bearer(['a.#']), await bearer(['b.#'])]
    const url = `${api.url}/streams/a.1`
    expect(await codeOf(await fetch(url, { method: 'PUT' }))).toBe('401 E_UNAUTHENTICATED')
    expect((await fetch(url, { method: 'PUT', headers: own, body: 'a' })).status).toBe(201)
    for (const method of ['GET', 'PUT', 'POST', 'DELETE']) {
      const body = method === 'POST' || method === 'PUT' ? 'b' : null
      expect(await codeOf(await fetch(url, { method, headers: others, body }))).toBe('403 E_FORBIDDEN')
    }
    expect((await fetch(url, { method: 'HEAD', headers: others })).status).toBe(403)
    expect(await (await fetch(url, { headers: own })).text()).toBe('a')
  })

  it('keep their limits', async () => {
    const api = await start({
      maxStreamBytes: 1_024,
      maxStreamAppends: 2,
      maxPayloadBytes: 2_048,
      history: ['a.#=100'],
    })
    const url = `${api.url}/streams/a.1`
    const post = (body: string) => fetch(url, { method: 'POST', headers: TEXT, body })
    expect(await codeOf(await fetch(url, { method: 'PUT', headers: TEXT, body: 'x'.repeat(1_025) }))).toBe(
      '413 E_STREAM_LIMIT',
    )
    await fetch(url, { method: 'PUT', headers: TEXT, body: 'x'.repeat(900) })
    expect(await codeOf(await post('x'.repeat(3_000)))).toBe('413 E_PAYLOAD_TOO_LARGE')
    expect(await codeOf(await post('x'.repeat(125)))).toBe('413 E_STREAM_LIMIT')
    expect((await post('x')).status).toBe(204)
    expect(await codeOf(await post('x'))).toBe('413 E_STREAM_LIMIT')
    expect((await fetch(url, { method: 'POST', headers: { 'stream-closed': 'true' } })).status).toBe(204)
    expect(await codeOf(await fetch(`${api.url}/streams/b`, { method: 'PUT' }))).toBe('501 E_UNSUPPORTED')
    expect(await codeOf(await fetch(`${api.url}/streams/a%20b`))).toBe('422 E_KEY_INVALID')
    expect(await codeOf(await fetch(`${api.url}/streams/%ff`))).toBe('400 E_REQUEST_INVALID')
  })

  it('belong to their writers: to many over HTTP, or to the one of WebMQ', async () => {
    const api = await start()
    const client = connect(api)
    const writer = await openStream('own', { client })
    const own = `${api.url}/streams/own`
    for (const method of ['POST', 'DELETE'])
      expect(await codeOf(await fetch(own, { method, headers: TEXT, body: method === 'POST' ? 'a' : null }))).toBe(
        '405 E_UNSUPPORTED',
      )
    expect(await codeOf(await fetch(own, { method: 'PUT', headers: TEXT }))).toBe('409 E_STREAM_BUSY')
    await writer.append('done')
    await writer.end()
    expect(await codeOf(await fetch(own, { method: 'POST', headers: TEXT, body: 'a' }))).toBe('409 E_STREAM_ENDED')
    expect((await fetch(own, { method: 'DELETE' })).status).toBe(204)
    expect((await fetch(own, { method: 'PUT', headers: TEXT })).status).toBe(201)
    await expect(openStream('own', { client })).rejects.toMatchObject({ code: 'E_STREAM_BUSY' })
  })

  it('are as many as there are: a node forgets those that nobody uses', async () => {
    const api = await start({ maxStreamsPerNode: 2 })
    const urls = ['a', 'b', 'c', 'd'].map((key) => `${api.url}/streams/${key}`)
    for (const url of urls) expect((await fetch(url, { method: 'PUT', headers: TEXT, body: url })).status).toBe(201)
    for (const url of urls) expect(await (await fetch(url)).text()).toBe(url)
    const live = urls.slice(0, 2).map((url) => fetch(`${url}?offset=now&live=sse`))
    const answers = await Promise.all(live)
    expect(await codeOf(await fetch(urls[2] ?? ''))).toBe('507 E_STREAM_LIMIT')
    for (const answer of answers) await answer.body?.cancel()
    await expect.poll(async () => (await fetch(urls[2] ?? '')).status).toBe(200)
  })

  it('have appends that hooks have changed, with the same key and still JSON', async () => {
    const changes: Record<string, object> = {
      '1\n': { payload: Buffer.from('[1]\n') },
      '2\n': { payload: Buffer.from('2,') },
      '3\n': { key: 'other' },
    }
    const api = await start({
      hooks: { publish: ({ payload }) => changes[Buffer.from(payload as Uint8Array).toString()] },
    })
    const url = `${api.url}/streams/a`
    const headers = { 'content-type': 'application/json' }
    await fetch(url, { method: 'PUT', headers })
    const statuses: number[] = []
    for (const body of ['0', '1', '2', '3', '4'])
      statuses.push((await fetch(url, { method: 'POST', headers, body })).status)
    expect(statuses).toEqual([204, 204, 503, 503, 204])
    expect(await (await fetch(url)).json()).toEqual([0, [1], 4])
  })
})
