import { afterEach, describe, expect, it, vi } from 'vitest'
import type { StreamSummary, WirePayload, WriteKind } from 'webmq-client/protocol'
import { freePort, type ServiceKind, sharedService } from 'webmq-services'
import { inTurn } from '../../../../test/in-turn.js'
import { createServer } from '../../src/create-server.js'
import type { WebMQServer } from '../../src/doors/in-process/webmq-server.js'
import type { ServerOptions } from '../../src/doors/options/server-options.js'
import { ProtocolClient } from '../protocol-client.js'
import { SseReader } from '../sse-reader.js'

const LEASE_MS = 4_000
const KEY = 'answer.7'

const servers: WebMQServer[] = []
const serverAt = new Map<string, WebMQServer>()
const clients: ProtocolClient[] = []
let namespaceCount = 0

afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  await Promise.all(servers.splice(0).map((server) => server.stop({ drainMs: 0 })))
})

async function startNode(options: ServerOptions): Promise<string> {
  const server = createServer({
    port: 0,
    logLevel: 'fatal',
    history: ['#=10000'],
    streamLeaseMs: LEASE_MS,
    maxStreamBytes: 20_000,
    ...options,
  })
  servers.push(server)
  const { url } = await server.start()
  serverAt.set(url, server)
  return url
}

/** Two nodes; of the memory broker, one. */
async function startNodes(kind: ServiceKind | 'memory', options: ServerOptions = {}): Promise<[string, string]> {
  if (kind === 'memory') {
    const url = await startNode(options)
    return [url, url]
  }
  const { url: broker } = await sharedService(kind)
  const shared = { broker, brokerNamespace: `streams-${process.pid}-${++namespaceCount}`, ...options }
  return [await startNode(shared), await startNode(shared)]
}

async function connect(url: string): Promise<ProtocolClient> {
  const client = await ProtocolClient.open(url)
  clients.push(client)
  return client
}

/** Writes as a client does: one message after the other. */
class Writer {
  client: ProtocolClient
  readonly #stream: string
  #sequence = -1

  constructor(client: ProtocolClient, stream: string) {
    this.client = client
    this.#stream = stream
  }

  async send(kind: WriteKind, payload: WirePayload = '', sequence = ++this.#sequence) {
    const [stream, key] = [this.#stream, KEY]
    const answer = await this.client.request((id) => ({ verb: 'stream', id, key, stream, sequence, kind, payload }))
    return answer.verb === 'ok' ? 'ok' : answer.code
  }

  append(text: string) {
    return this.send('append', JSON.stringify(text))
  }

  again(kind: WriteKind, payload: WirePayload) {
    return this.send(kind, payload, this.#sequence)
  }
}

interface Shown extends StreamSummary {
  readonly text: unknown
  readonly position: string | undefined
}

async function readAt(client: ProtocolClient): Promise<Shown> {
  const count = client.received('message').filter(({ meta }) => meta?.stream?.endsWith(':text')).length
  const answer = await client.request((id) => ({ verb: 'read', id, key: KEY }))
  if (answer.verb === 'error') throw new Error(answer.code)
  const wholes = client.received('message').filter(({ meta }) => meta?.stream?.endsWith(':text'))
  if (answer.replayed === 0) return { ...(answer.result as object), text: undefined, position: answer.position }
  await client.until(
    () => client.received('message').filter(({ meta }) => meta?.stream?.endsWith(':text')).length > count,
  )
  const { payload } =
    client.received('message').filter(({ meta }) => meta?.stream?.endsWith(':text'))[count] ?? wholes[0] ?? {}
  const text = typeof payload === 'string' ? JSON.parse(payload) : payload
  return { ...(answer.result as object), text, position: answer.position }
}

async function readFrom(url: string): Promise<Shown> {
  return await readAt(await connect(url))
}

/** What the history of the key has: kinds and payloads. */
async function historyAt(client: ProtocolClient, options: { since?: string; last?: number; limit?: number } = {}) {
  const before = client.received('message').length
  const answer = await client.request((id) => ({ verb: 'history', id, key: KEY, ...options }))
  if (answer.verb === 'error') throw new Error(answer.code)
  const count = answer.replayed ?? 0
  await client.until(() => client.received('message').length === before + count)
  return client
    .received('message')
    .slice(before)
    .map(({ meta, payload, position }) => ({ place: meta?.stream, payload, position }))
}

/** Messages in the log of a node. */
const countInLog = (url: string) => serverAt.get(url)?.stats().broker.log?.messageCount

/** The kinds that a listener got, in order. */
function kindsAt(client: ProtocolClient): string[] {
  return client
    .received('message')
    .map(({ meta }) => meta?.stream?.split(':').at(-1) ?? '')
    .filter((kind) => kind !== 'beat' && kind !== 'text')
}

describe.each(inTurn(['memory', 'redis', 'nats', 'rabbitmq'] as const))('streams with %s', (kind) => {
  it('are stopped from any node while single posts write them', async () => {
    const apiKey = 'api-key-of-32-bytes-for-the-tests'
    const [here, there] = await startNodes(kind, { apiKeys: [apiKey] })
    const post = async (url: string, stream: string, sequence: number, kind: WriteKind, payload?: string) => {
      const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ key: KEY, stream, sequence, kind, payload })
      const answer = await fetch(`${url.replace('ws', 'http').replace(/\/ws$/, '')}/api/streams`, {
        method: 'POST',
        headers,
        body,
      })
      return [answer.status, ((await answer.json()) as { code?: string }).code]
    }
    for (let round = 0; round < 4; round++) {
      const stream = `s${round}`
      expect(await post(here, stream, 0, 'start')).toEqual([200, undefined])
      expect(await post(there, stream, 1, 'append', 'Once')).toEqual([200, undefined])
      const stop = () => serverAt.get(there)?.request(KEY, { type: 'stop', stream })
      expect(await Promise.all([stop(), stop()])).toEqual([null, null])
      for (const url of [here, there])
        expect(await post(url, stream, 2, 'append', '.')).toEqual([409, 'E_STREAM_ENDED'])
      await vi.waitFor(async () =>
        expect(await readFrom(there)).toMatchObject({ stream, status: 'stop', text: 'Once' }),
      )
    }
  })

  it('are the same text on every node, for those who come early, late, and after the end', async () => {
    const [here, there] = await startNodes(kind)
    const listener = await connect(there)
    await listener.request((id) => ({ verb: 'listen', id, pattern: KEY }))
    const writer = new Writer(await connect(here), 'one')
    expect(await writer.send('start', '{"model":"m"}')).toBe('ok')
    const texts = ['Once ', 'upon \ud83d', '\ude42', '"\\\u0007', ' a time']
    for (const text of texts) expect(await writer.append(text)).toBe('ok')
    for (const url of [here, there]) {
      await vi.waitFor(async () =>
        expect(await readFrom(url)).toMatchObject({
          stream: 'one',
          sequence: 5,
          status: 'active',
          text: texts.join(''),
        }),
      )
    }
    // Who goes on from there has no hole, and nothing twice.
    const late = await connect(there)
    const { position = '', sequence } = await readAt(late)
    expect(await writer.append('.')).toBe('ok')
    await late.request((id) => ({ verb: 'listen', id, pattern: KEY, since: position }))
    expect(await writer.append('.')).toBe('ok')
    expect(await writer.send('end', '{"tokens":7}')).toBe('ok')
    await late.until(() => kindsAt(late).at(-1) === 'end')
    expect(kindsAt(late)).toEqual(['append', 'append', 'end'])
    expect(sequence).toBe(5)
    await listener.until(() => kindsAt(listener).length === 9)
    const ended = { status: 'end', text: `${texts.join('')}..`, meta: { model: 'm' }, result: { tokens: 7 } }
    for (const url of [here, there]) await vi.waitFor(async () => expect(await readFrom(url)).toMatchObject(ended))
    expect(await writer.append('late')).toBe('E_STREAM_ENDED')
  })

  it('have one writer: of two that begin at once on any nodes, the log decides', async () => {
    const [here, there] = await startNodes(kind)
    const writers = [new Writer(await connect(here), 'one'), new Writer(await connect(there), 'two')] as const
    const answers = await Promise.all(writers.map((writer) => writer.send('start')))
    expect([...answers].sort()).toEqual(['E_STREAM_BUSY', 'ok'])
    const [winner, loser] = answers[0] === 'ok' ? writers : [writers[1], writers[0]]
    expect(await winner.append('won')).toBe('ok')
    expect(await new Writer(loser.client, 'three').send('start')).toBe('E_STREAM_BUSY')
    expect(await winner.send('end')).toBe('ok')
    await vi.waitFor(async () => expect(await new Writer(loser.client, 'three').send('start')).toBe('ok'))
    await vi.waitFor(async () => expect(await readFrom(here)).toMatchObject({ stream: 'three', text: undefined }))
  })

  it('go on when their writer moves to another node, which sends again what was not answered', async () => {
    const [here, there] = await startNodes(kind)
    const writer = new Writer(await connect(here), 'one')
    const bytes = Uint8Array.of(0, 255, 10)
    await writer.send('start')
    expect(await writer.send('append', bytes)).toBe('ok')
    writer.client = await connect(there)
    expect(await writer.again('append', bytes)).toBe('ok')
    expect(await writer.send('append', Uint8Array.of(7))).toBe('ok')
    expect(await writer.send('stop')).toBe('ok')
    await vi.waitFor(async () =>
      expect(await readFrom(here)).toMatchObject({ status: 'stop', text: Uint8Array.of(0, 255, 10, 7) }),
    )
  })

  it('are lost once when their writer dies, and not while it says that it is alive', async () => {
    const [here, there] = await startNodes(kind)
    const listeners = [await connect(here), await connect(there)]
    for (const client of listeners) await client.request((id) => ({ verb: 'listen', id, pattern: KEY }))
    const writer = new Writer(await connect(here), 'one')
    await writer.send('start')
    await writer.append('so far')
    for (const client of listeners) expect((await readAt(client)).status).toBe('active')
    const beginMs = performance.now()
    while (performance.now() - beginMs < 1.5 * LEASE_MS) {
      expect(await writer.again('beat', '')).toBe('ok')
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 6))
    }
    expect((await readFrom(there)).status).toBe('active')
    writer.client.socket.terminate()
    for (const client of listeners) await client.until(() => kindsAt(client).at(-1) === 'lost')
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 2))
    for (const client of listeners) expect(kindsAt(client)).toEqual(['start', 'append', 'lost'])
    expect(await readFrom(there)).toMatchObject({ status: 'lost', text: 'so far' })
    writer.client = await connect(there)
    expect(await writer.append('back')).toBe('E_STREAM_ENDED')
    expect(await new Writer(writer.client, 'two').send('start')).toBe('ok')
  })

  it('are written and read over HTTP on any node, and followed by event streams', async () => {
    const [here, there] = (await startNodes(kind)).map((url) => url.replace(/^ws(.*)\/ws$/, 'http$1'))
    const reader = new SseReader(Number(new URL(there ?? '').port), `stream=${KEY}`)
    await reader.next('whole')
    const post = async (at: string | undefined, body: BodyInit, contentType: string) => {
      const request = { method: 'POST', body, headers: { 'content-type': contentType }, duplex: 'half' }
      return (await fetch(`${at}/api/streams?key=${KEY}`, request as RequestInit)).json() as Promise<object>
    }
    const read = async (at: string | undefined) =>
      (await fetch(`${at}/api/streams?key=${KEY}`)).json() as Promise<Record<string, unknown>>
    // Torn characters, one piece at a time.
    const text = 'Once \u{1f642} upon\na time '.repeat(40)
    const bytes = Buffer.from(text)
    const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, index) =>
      bytes.subarray(7 * index, 7 * index + 7),
    )
    const body = async function* () {
      for (const piece of pieces) {
        await new Promise((resolve) => setImmediate(resolve))
        yield piece
      }
    }
    expect(await post(here, body() as unknown as BodyInit, 'text/plain')).toMatchObject({ status: 'end' })
    for (const at of [here, there])
      await vi.waitFor(async () => expect(await read(at)).toMatchObject({ text, status: 'end' }))
    await reader.next('end')
    const appended = reader.named('append').map(({ data }) => data.text)
    expect(`${reader.named('whole').at(-1)?.data.text}${appended.join('')}`).toBe(text)
    // A retry goes to another node.
    const writes = [
      [here, { sequence: 0, kind: 'start' }],
      [there, { sequence: 1, kind: 'append', payload: 'There was' }],
      [here, { sequence: 1, kind: 'append', payload: 'There was' }],
      [here, { sequence: 2, kind: 'end' }],
    ] as const
    const answers = []
    for (const [at, write] of writes)
      answers.push(await post(at, JSON.stringify({ key: KEY, stream: 'two', ...write }), 'application/json'))
    expect(answers).toMatchObject([false, false, true, false].map((duplicate) => ({ stream: 'two', duplicate })))
    await vi.waitFor(async () => expect(await read(there)).toMatchObject({ text: 'There was', status: 'end' }))
  })

  it.runIf(kind !== 'memory')(
    'fail at once when the node that writes them, for itself or over HTTP, stops',
    async () => {
      const [here, there] = await startNodes(kind, { streamLeaseMs: 600_000 })
      const [server, other] = servers.slice(-2)
      const writer = await server?.stream('own')
      await writer?.append('Once')
      const body = async function* () {
        yield Buffer.from('Once')
        await new Promise(() => undefined)
      }
      const path = `/api/streams?key=${KEY}`
      const request = { method: 'POST', body: body(), headers: { 'content-type': 'text/plain' }, duplex: 'half' }
      const answer = fetch(new URL(path, here.replace('ws', 'http')), request as unknown as RequestInit)
      for (const key of [KEY, 'own'])
        await vi.waitFor(async () => expect((await other?.readStream(key))?.text).toBe('Once'))
      await server?.stop({ drainMs: 0 })
      const failed = { status: 'fail', text: 'Once', result: { code: 'E_NOT_RUNNING' } }
      for (const key of [KEY, 'own'])
        await vi.waitFor(async () => expect(await other?.readStream(key)).toMatchObject(failed))
      expect((await answer).status).toBe(503)
      expect(there).not.toBe(here)
    },
  )

  it('are one message in the history once they have ended, and for resuming listeners what they were', async () => {
    const [here, there] = await startNodes(kind)
    const listener = await connect(there)
    await listener.request((id) => ({ verb: 'listen', id, pattern: '#' }))
    const writer = new Writer(await connect(here), 'one')
    await writer.send('start', '{"model":"m"}')
    for (const text of ['a', 'b', 'c']) await writer.append(text)
    const { position: middle = '' } = await readFrom(here)
    for (const text of ['d', 'e']) await writer.append(text)
    await writer.send('end', '{"tokens":7}')
    const next = new Writer(writer.client, 'two')
    await next.send('start')
    await next.append('of the next')
    for (const url of [here, there]) {
      await vi.waitFor(async () =>
        expect(await historyAt(await connect(url))).toMatchObject([
          { place: 'one:6:text', payload: '"abcde"' },
          { place: 'two:0:start' },
          { place: 'two:1:append', payload: '"of the next"' },
        ]),
      )
      // Once in the log, however many nodes are asked.
      await readFrom(url)
      expect(countInLog(url)).toBe(10)
      expect(await historyAt(await connect(url), { last: 1 })).toMatchObject([{ place: 'two:1:append' }])
      const paging = await connect(url)
      const [first] = await historyAt(paging, { since: middle, limit: 1 })
      expect(first).toMatchObject({ place: 'one:6:text' })
      expect(await historyAt(paging, { since: first?.position ?? '' })).toMatchObject([
        { place: 'two:0:start' },
        { place: 'two:1:append' },
      ])
      const late = await connect(url)
      const answer = await late.request((id) => ({ verb: 'listen', id, pattern: KEY, since: middle }))
      expect(answer).toMatchObject({ recovered: true, replayed: 5 })
      await late.until(() => kindsAt(late).length === 5)
      expect(kindsAt(late)).toEqual(['append', 'append', 'end', 'start', 'append'])
      expect(late.payloads.slice(0, 2)).toEqual(['"d"', '"e"'])
    }
    await listener.until(() => kindsAt(listener).length === 9)
    await next.append('.')
    await listener.until(() => kindsAt(listener).length === 10)
    expect(listener.received('message').filter(({ meta }) => meta?.stream?.endsWith(':text'))).toEqual([])
  })

  it('are rolled up when they are lost, and keep bytes as they are', async () => {
    const [here, there] = await startNodes(kind)
    const bytes = Uint8Array.of(0, 255, 10, 13, 10)
    const writer = new Writer(await connect(here), 'one')
    await writer.send('start')
    await writer.send('append', bytes)
    await writer.send('append', bytes)
    await vi.waitFor(
      async () =>
        expect(await historyAt(await connect(there))).toMatchObject([
          { place: 'one:3:text', payload: Uint8Array.of(...bytes, ...bytes) },
        ]),
      { timeout: 30_000 },
    )
    expect(await readFrom(there)).toMatchObject({ status: 'lost', text: Uint8Array.of(...bytes, ...bytes) })
  })

  it('keep their text when the log has dropped their first messages, while they grow and after the end', async () => {
    const options = { history: ['#=10'], historyMaxMessages: 60, maxStreamBytes: 200_000 }
    const [here, there] = await startNodes(kind, options)
    const writer = new Writer(await connect(here), 'one')
    await writer.send('start', '{"model":"m"}')
    const texts = Array.from({ length: 90 }, (_, index) => `${index} `.padEnd(1_500, 'x'))
    for (const text of texts) expect(await writer.append(text)).toBe('ok')
    const active = { status: 'active', text: texts.join(''), meta: { model: 'm' } }
    await vi.waitFor(async () => expect(await readFrom(there)).toMatchObject(active))
    await writer.send('end')
    const other = await connect(here)
    const publish = (id: string) => ({ verb: 'publish', id, key: 'other', echo: true, payload: '1' }) as const
    await vi.waitFor(async () => expect(await historyAt(other)).toMatchObject([{ place: 'one:91:text' }]))
    for (let index = 0; index < 50; index++) await other.request(publish)
    const ended = { ...active, status: 'end' }
    for (const url of [here, there]) {
      await vi.waitFor(async () => expect(await readFrom(url)).toMatchObject(ended))
      expect(await historyAt(await connect(url))).toMatchObject([{ payload: JSON.stringify(texts.join('')) }])
    }
  })

  it('are the state of their key, whole, for as long as it is retained', async () => {
    const options = { historyMaxMessages: 200, retain: ['answer.#'], retainMaxKeys: 50 }
    const [here, there] = await startNodes(kind, options)
    const state = async (url: string) => {
      const client = await connect(url)
      const answer = await client.request((id) => ({ verb: 'listen', id, pattern: 'answer.*', state: true }))
      await client.until(() => client.received('message').length === (answer.verb === 'ok' ? answer.replayed : 0))
      return client.received('message').map(({ meta, payload }) => ({ place: meta?.stream, payload }))
    }
    const client = await connect(here)
    const writer = new Writer(client, 'one')
    await writer.send('start', '{"model":"m"}')
    for (const text of ['a', 'b']) await writer.append(text)
    expect(await state(here)).toEqual([])
    await writer.send('end')
    const next = new Writer(client, 'two')
    await vi.waitFor(async () => expect(await next.send('start')).toBe('ok'))
    const whole = [{ place: 'one:3:text', payload: '"ab"' }]
    for (const url of [here, there]) await vi.waitFor(async () => expect(await state(url)).toEqual(whole))
    await next.send('end')
    await vi.waitFor(async () => expect(await state(there)).toEqual([{ place: 'two:1:text', payload: '""' }]))
    const last = new Writer(client, 'last')
    await last.send('start', '{"model":"m"}')
    for (const text of ['a', 'b']) await last.append(text)
    await last.send('end', '7')
    const publish = (id: string) => ({ verb: 'publish', id, key: 'other', echo: true, payload: '1' }) as const
    for (let index = 0; index < 450; index++) await client.request(publish)
    const ended = { stream: 'last', status: 'end', text: 'ab', meta: { model: 'm' }, result: 7 }
    for (const url of [here, there]) {
      await vi.waitFor(async () => expect(await state(url)).toEqual([{ place: 'last:3:text', payload: '"ab"' }]))
      expect(await readFrom(url)).toMatchObject(ended)
    }
  })

  it('are bounded, and refuse what is none', async () => {
    const [here] = await startNodes(kind, { maxStreamAppends: 5, maxStreamsPerUser: 1 })
    const client = await connect(here)
    const writer = new Writer(client, 'one')
    expect(await writer.send('append', '"x"', 0)).toBe('E_STREAM_SEQUENCE')
    expect(await writer.send('start', 'no JSON', 0)).toBe('E_PAYLOAD_INVALID')
    expect(await writer.send('start')).toBe('ok')
    expect(await writer.again('start', '')).toBe('ok')
    const other = await client.request((id) => {
      return { verb: 'stream', id, key: 'another', stream: 'two', sequence: 0, kind: 'start', payload: '' }
    })
    expect(other).toMatchObject({ code: 'E_STREAM_LIMIT' })
    expect(await writer.send('append', '1', 1)).toBe('E_PAYLOAD_INVALID')
    expect(await writer.send('append', JSON.stringify('x'.repeat(20_001)), 1)).toBe('E_STREAM_LIMIT')
    for (let index = 0; index < 5; index++) expect(await writer.append('x')).toBe('ok')
    expect(await writer.send('append', '"x"', 6)).toBe('E_STREAM_LIMIT')
    expect(await writer.send('end')).toBe('ok')
    expect(await readAt(client)).toMatchObject({ status: 'end', text: 'xxxxx' })
  })
})

describe('streams', () => {
  it('need a log that all nodes share', async () => {
    const place = `127.0.0.1:${await freePort()}`
    const mesh = await startNode({ broker: `mesh://${place}`, mesh: { listen: place } })
    const plain = await startNode({ history: ['other=10'] })
    for (const url of [mesh, plain]) {
      const client = await connect(url)
      expect(await new Writer(client, 'one').send('start')).toBe('E_UNSUPPORTED')
      await expect(readAt(client)).rejects.toThrow('E_UNSUPPORTED')
    }
  })

  it('are read whole after a gap: the log no longer has what came before', async () => {
    // Too large to be one message.
    const url = await startNode({ historyMaxMessages: 20, maxPayloadBytes: 60 })
    const client = await connect(url)
    const writer = new Writer(client, 'one')
    await writer.send('start')
    for (let index = 0; index < 30; index++) expect(await writer.append(`${index} `)).toBe('ok')
    // The node has watched it from the start.
    const whole = Array.from({ length: 30 }, (_, index) => `${index} `).join('')
    expect(await readAt(client)).toMatchObject({ text: whole, status: 'active' })
    expect(await writer.send('end')).toBe('ok')
    const cut = await readAt(client)
    expect(cut).toMatchObject({ isCut: true, status: 'end' })
    expect(whole.endsWith(cut.text as string)).toBe(true)
  })
})
