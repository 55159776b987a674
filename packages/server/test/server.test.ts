import { createServer as createHttpServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { SignJWT } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { itWhere } from 'webmq-conformance'
import { createServer } from '../src/create-server.js'
import type { WebMQServer } from '../src/doors/in-process/webmq-server.js'
import type { ServerOptions } from '../src/doors/options/server-options.js'
import { useOwnClock } from './own-clock.js'
import { type ConnectOptions, ProtocolClient } from './protocol-client.js'

const SECRET = 'a secret of more than thirty-two bytes'
const ALL = [{ keys: ['#'], allow: ['listen', 'publish'] }]

function token(claims: { user?: string; grants?: object[]; lifeS?: number } = {}, secret = SECRET): Promise<string> {
  const { user = 'ann', grants = ALL, lifeS = 60 } = claims
  return new SignJWT({ webmq: { grants } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(user)
    .setExpirationTime(Math.floor(Date.now() / 1_000) + lifeS)
    .sign(new TextEncoder().encode(secret))
}

/** The answer to an upgrade that is not accepted. */
function refusedUpgrade(port: number): Promise<object> {
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-version': '13',
  }
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/ws', headers, agent: false }, async (response) => {
      const { statusCode: status, headers } = response
      resolve({ status, retryAfter: headers['retry-after'], body: await json(response) })
    })
      .on('upgrade', (_response, socket) => {
        socket.destroy()
        reject(new Error('the upgrade was accepted'))
      })
      .on('error', reject)
  })
}

describe.each(['native', 'ws', 'uws'] as const)('a server on the %s transport', (transport) => {
  const ends: (() => Promise<void>)[] = []

  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  async function start(options: ServerOptions = {}) {
    const server = createServer({ transport, port: 0, logLevel: 'silent', closeTimeoutMs: 500, ...options })
    ends.push(() => server.stop({ drainMs: 0 }))
    const { url, port } = await server.start()
    return { server, url, port }
  }

  async function connect(url: string, options?: ConnectOptions): Promise<ProtocolClient> {
    const client = await ProtocolClient.open(url, options)
    ends.push(async () => client.socket.terminate())
    return client
  }

  const publish = (client: ProtocolClient, key: string, payload: string | Uint8Array) =>
    client.request((id) => ({ verb: 'publish', id, key, echo: true, payload }))

  it('carries messages from one connection to all others that listen, in order, byte for byte', async () => {
    const { url } = await start()
    const clients = await Promise.all(Array.from({ length: 3 }, () => connect(url)))
    const [a, b, c] = clients as [ProtocolClient, ProtocolClient, ProtocolClient]
    expect(a.received('welcome')).toMatchObject([{ protocol: 'webmq.v1', auth: 'none', heartbeatMs: 25_000 }])
    expect(a.socket.protocol).toBe('webmq.v1')
    await a.request((id) => ({ verb: 'listen', id, pattern: 'chat.*.message' }))
    await a.request((id) => ({ verb: 'listen', id, pattern: 'chat.#' }))
    await b.request((id) => ({ verb: 'listen', id, pattern: '#' }))
    const payloads: (string | Uint8Array)[] = ['{"big":9007199254740993}', Uint8Array.of(0, 255, 10), '', '"ü€😀"']
    for (const payload of payloads) await publish(c, 'chat.42.message', payload)
    await publish(c, 'chäts..x', '1')
    const plain = payloads.map((payload) => (typeof payload === 'string' ? payload : [...payload]))
    await b.until(() => b.payloads.length === 5)
    await a.settled()
    expect(a.payloads).toEqual(plain)
    expect(b.payloads).toEqual([...plain, '1'])
    expect(b.received('message').at(-1)?.key).toBe('chäts..x')
    expect(c.payloads).toEqual([])
    await a.request((id) => ({ verb: 'unlisten', id, pattern: 'chat.#' }))
    await a.request((id) => ({ verb: 'unlisten', id, pattern: 'chat.*.message' }))
    await publish(c, 'chat.42.message', '2')
    await a.settled()
    expect(a.payloads).toEqual(plain)
  })

  it.each<[string, string, string | undefined, string]>([
    ['a publish without a key', 'publish 1\n1', '1', 'E_KEY_INVALID'],
    ['a space too many', 'publish 1 a \n1', '1', 'E_MESSAGE_INVALID'],
    ['an option with a bad name', 'publish 1 k No\n1', '1', 'E_MESSAGE_INVALID'],
    ['a wildcard in a key', 'publish 1 a.*\n1', '1', 'E_KEY_INVALID'],
    ['a key that is too long', `publish 1 ${'k'.repeat(256)}\n1`, '1', 'E_KEY_INVALID'],
    ['a bad key in a publish without an id', 'publish - a.#\n1', undefined, 'E_KEY_INVALID'],
    ['a publish without a payload', 'publish 1 k', '1', 'E_MESSAGE_INVALID'],
    ['a payload that is too large', `publish 1 k\n${'x'.repeat(1_001)}`, '1', 'E_PAYLOAD_TOO_LARGE'],
    ['a wildcard inside a word', 'listen 1 a.b#', '1', 'E_PATTERN_INVALID'],
    ['since together with last', 'listen 1 k since=a:1 last=1', '1', 'E_MESSAGE_INVALID'],
    ['a position that is none', 'listen 1 k since=nonsense', '1', 'E_POSITION_INVALID'],
    ['a replay of a queue group', 'listen 1 k group=g last=1', '1', 'E_UNSUPPORTED'],
    ['an unlisten without a listen', 'unlisten 1 never', '1', 'E_NOT_LISTENING'],
    ['presence without saying what', 'presence 1 room', '1', 'E_MESSAGE_INVALID'],
    ['presence at a key of the servers', 'presence 1 $webmq op=watch', '1', 'E_FORBIDDEN'],
    ['the history of a pattern', 'history 1 room.*', '1', 'E_KEY_INVALID'],
    ['another verb', 'subscribe 1 k', '1', 'E_VERB_UNKNOWN'],
    ['a verb in capitals', 'LISTEN 1 k', '1', 'E_VERB_UNKNOWN'],
    ['another protocol', '{"type":"subscribe"}', undefined, 'E_VERB_UNKNOWN'],
    ['nothing', '', undefined, 'E_MESSAGE_INVALID'],
    ['a header that is too long', 'x'.repeat(2_049), undefined, 'E_MESSAGE_INVALID'],
    ['an auth without a token', 'auth 1', '1', 'E_MESSAGE_INVALID'],
  ])('answers %s with an error, and goes on', async (_what, message, id, code) => {
    const { url } = await start({ maxPayloadBytes: 1_000, maxOutboxBytes: 8_192 })
    const client = await connect(url)
    client.socket.send(message)
    const answer = await client.answerTo(id)
    expect(answer).toMatchObject({ verb: 'error', code, retryable: false })
    await client.settled()
    expect(client.closure).toBeUndefined()
  })

  it('closes a connection that sends more than a message may have, or too much that is malformed', async () => {
    const { url } = await start({ maxPayloadBytes: 1_000, maxOutboxBytes: 8_192 })
    const [large, malformed] = [await connect(url), await connect(url)]
    large.socket.send(`publish - k\n${'x'.repeat(5_100)}`)
    await large.until(() => large.closure?.code === 1009)
    for (let index = 0; index < 16; index++) malformed.socket.send('listen  k')
    await malformed.until(() => malformed.closure?.code === 4500)
    expect(malformed.received('error').map(({ code }) => code)).toEqual(Array(16).fill('E_MESSAGE_INVALID'))
    expect(malformed.received('bye')).toEqual([{ verb: 'bye', code: 4500 }])
  })

  it('replays exactly once and in order what a listener missed, however often it comes back', async () => {
    const { url } = await start()
    const publisher = await connect(url)
    const total = 2_000
    const seen: number[] = []
    let since: string | undefined
    const published = (async () => {
      for (let index = 0; index < total; index++) {
        publisher.send({ verb: 'publish', key: `k.${index % 7}`, echo: true, payload: `${index}` })
        if (index % 20 === 0) await publisher.settled()
      }
    })()
    let begin = true
    while (seen.length < total) {
      const listener = await connect(url)
      const start = since
      const answer = await listener.request((id) => {
        if (begin) return { verb: 'listen', id, pattern: 'k.*', last: 10_000 }
        return { verb: 'listen', id, pattern: 'k.#', ...(start === undefined ? {} : { since: start }) }
      })
      expect(answer).toMatchObject(begin ? { verb: 'ok' } : { verb: 'ok', recovered: true })
      begin = false
      const enough = Math.min(total - seen.length, 300)
      await listener.until(() => listener.received('message').length >= enough)
      listener.socket.terminate()
      for (const { payload, position } of listener.received('message')) {
        seen.push(Number(payload))
        since = position
      }
    }
    await published
    expect(seen).toEqual(Array.from({ length: total }, (_, index) => index))
  })

  it('says gap after a restart, when nobody can know what was missed', async () => {
    const first = await start()
    const client = await connect(first.url)
    const { position: since = '' } = await publish(client, 'k', '1').then((answer) => ({ position: '', ...answer }))
    const second = await start()
    const other = await connect(second.url)
    await publish(other, 'k', '2')
    const answer = await other.request((id) => ({ verb: 'listen', id, pattern: 'k', since }))
    expect(answer).toMatchObject({ gap: 'epoch-changed', replayed: 1 })
    expect(answer).not.toHaveProperty('recovered')
  })

  it('de-duplicates by message id over connections, and leaves out the publisher with noecho', async () => {
    const { url } = await start()
    const [a, b] = [await connect(url), await connect(url)]
    for (const client of [a, b]) await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))
    const send = (client: ProtocolClient, messageId: string) =>
      client.request((id) => ({ verb: 'publish', id, key: 'k', messageId, echo: false, payload: `"${messageId}"` }))
    const first = await send(a, 'm-1')
    const again = await send(b, 'm-1')
    expect(again).toEqual({ ...first, id: again.id, duplicate: true })
    await send(b, 'm-2')
    await a.until(() => a.payloads.length > 0)
    await b.settled()
    expect([a.payloads, b.payloads]).toEqual([['"m-2"'], ['"m-1"']])
  })

  it('reads the history of a key', async () => {
    const { server, url } = await start()
    for (const payload of [1, 2, 3]) await server.publish('k', payload)
    const client = await connect(url)
    expect(await client.request((id) => ({ verb: 'history', id, key: 'k', last: 2 }))).toMatchObject({ replayed: 2 })
    await client.until(() => client.payloads.length === 2)
    expect(client.received('message')).toMatchObject([
      { key: 'k', payload: '2', replayed: true },
      { key: 'k', payload: '3', replayed: true },
    ])
  })

  it('lets the process itself publish and listen', async () => {
    const { server, url } = await start()
    const client = await connect(url)
    const received: unknown[] = []
    await server.listen('to.server', (payload) => received.push(payload)).ready
    await client.request((id) => ({ verb: 'listen', id, pattern: 'to.client' }))
    await server.publish('to.client', { n: 1 })
    await publish(client, 'to.server', '{"n":2}')
    await client.until(() => client.payloads.length === 1 && received.length === 1)
    expect([client.payloads, received]).toEqual([['{"n":1}'], [{ n: 2 }]])
    expect(server.stats()).toMatchObject({ connectionCount: 1, patternCount: 2, transport: { connections: 1 } })
  })

  it('refuses upgrades with a status and a reason', async () => {
    const { url } = await start({ origins: ['https://app.example.com'] })
    expect(await ProtocolClient.refusal(url.replace('/ws', '/other'))).toMatchObject({
      status: 404,
      json: { code: 'E_PATH_NOT_FOUND' },
    })
    expect(await ProtocolClient.refusal(url, { origin: 'https://evil.example.com' })).toMatchObject({
      status: 403,
      json: { code: 'E_ORIGIN_FORBIDDEN' },
    })
    expect(await ProtocolClient.refusal(url, { subprotocols: ['mqtt'] })).toMatchObject({
      status: 400,
      json: { code: 'E_SUBPROTOCOL_UNSUPPORTED' },
    })
    expect((await connect(url, { origin: 'https://app.example.com', subprotocols: [] })).socket.protocol).toBe('')
  })

  describe('with tokens', () => {
    const jwt = { secret: SECRET }

    it('takes them from the header, from a subprotocol and from auth', async () => {
      const { url } = await start({ jwt })
      const good = await token()
      const byHeader = await connect(url, { headers: { authorization: `Bearer ${good}` } })
      const bySubprotocol = await connect(url, { subprotocols: ['webmq.v1', `webmq.bearer.${good}`] })
      for (const client of [byHeader, bySubprotocol]) {
        expect(client.received('welcome')).toMatchObject([{ auth: 'done', expiresInMs: expect.any(Number) }])
        expect(client.socket.protocol).toBe('webmq.v1')
      }
      const byVerb = await connect(url)
      expect(byVerb.received('welcome')).toMatchObject([{ auth: 'required' }])
      expect(await publish(byVerb, 'k', '1')).toMatchObject({ code: 'E_UNAUTHENTICATED' })
      expect(await byVerb.request((id) => ({ verb: 'auth', id, token: good }))).toMatchObject({
        verb: 'ok',
        result: { userId: 'ann' },
      })
      expect(await publish(byVerb, 'k', '1')).toMatchObject({ verb: 'ok' })
    })

    it('keeps the message ids of users apart', async () => {
      const { url } = await start({ jwt })
      const connectAs = async (user: string) =>
        connect(url, { headers: { authorization: `Bearer ${await token({ user })}` } })
      const send = (client: ProtocolClient) =>
        client.request((id) => ({ verb: 'publish', id, key: 'k', messageId: 'm-1', echo: true, payload: '1' }))
      const [ann, annAgain, bob] = [await connectAs('ann'), await connectAs('ann'), await connectAs('bob')]
      expect(await send(ann)).not.toHaveProperty('duplicate')
      expect(await send(bob)).not.toHaveProperty('duplicate')
      expect(await send(annAgain)).toMatchObject({ duplicate: true })
    })

    it('says why to browsers when one is not good', async () => {
      const { url } = await start({ jwt, authTimeoutMs: 1_000 })
      const forged = await token({}, 'another secret, also of thirty-two bytes')
      const expired = await token({ lifeS: -60 })
      for (const [bad, code, closeCode] of [
        [forged, 'E_TOKEN_INVALID', 4501],
        [expired, 'E_TOKEN_EXPIRED', 4009],
      ] as const) {
        const client = await connect(url, { subprotocols: ['webmq.v1', `webmq.bearer.${bad}`] })
        await client.until(() => client.closure !== undefined)
        expect(client.messages).toMatchObject([
          { verb: 'error', code },
          { verb: 'bye', code: closeCode },
        ])
        expect(client.closure?.code).toBe(closeCode)
      }
      const silent = await connect(url)
      await silent.until(() => silent.closure !== undefined)
      expect(silent.closure?.code).toBe(4002)
    })

    it('holds everyone to what is granted, and to how long', async () => {
      const clock = useOwnClock()
      const { url } = await start({ jwt })
      const grants = [{ keys: ['chat.#'], allow: ['listen'] }]
      const short = await token({ grants, lifeS: 20 })
      const client = await connect(url, { headers: { authorization: `Bearer ${short}` } })
      expect(await client.request((id) => ({ verb: 'listen', id, pattern: 'chat.*' }))).toMatchObject({ verb: 'ok' })
      expect(await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))).toMatchObject({
        code: 'E_FORBIDDEN',
      })
      expect(await publish(client, 'chat.1', '1')).toMatchObject({ code: 'E_FORBIDDEN' })
      clock.putForward(20_000)
      await client.until(() => client.closure !== undefined)
      expect(client.received('expiring')).toHaveLength(1)
      expect(client.received('bye')).toEqual([{ verb: 'bye', code: 4009 }])
      expect(client.closure?.code).toBe(4009)
    })
  })

  // Symptom: while a node drained, its probes could not connect. Cause: the port closed with the signal.
  it('drains with an open port: probes and upgrades are answered, and everyone is sent away with 4001 and a time', async () => {
    const { server, url, port } = await start({ drainPerSecond: 20 })
    const clients = await Promise.all(Array.from({ length: 20 }, () => connect(url)))
    const base = `http://127.0.0.1:${port}`
    expect((await fetch(`${base}/ready`)).status).toBe(200)
    const stopped = server.stop({ drainMs: 10_000 })
    // Each on a connection of its own.
    const [ready, health] = [await fetch(`${base}/ready`), await fetch(`${base}/health`)]
    // Whoever restarts what is not alive must leave it alone while it drains.
    expect([ready.status, health.status]).toEqual([503, 200])
    for (const response of [ready, health]) expect(await response.json()).toMatchObject({ status: 'draining' })
    expect(await refusedUpgrade(port)).toEqual({
      status: 503,
      retryAfter: '1',
      body: expect.objectContaining({ code: 'E_DRAIN' }),
    })
    await Promise.all([stopped, server.stop()])
    for (const client of clients) {
      await client.until(() => client.closure !== undefined)
      expect(client.closure?.code).toBe(4001)
      expect(client.received('bye')).toEqual([{ verb: 'bye', code: 4001, retryAfterMs: expect.any(Number) }])
    }
    await expect(refusedUpgrade(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('serves health, the demo page and the client on the same port', async () => {
    const { url, port } = await start({ demo: true })
    await connect(url)
    const base = `http://127.0.0.1:${port}`
    expect(await (await fetch(`${base}/health`)).json()).toMatchObject({
      status: 'ok',
      connections: 1,
      broker: { name: 'memory', status: 'up' },
    })
    expect((await fetch(`${base}/`)).headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect((await fetch(`${base}/client/protocol/index.js`)).headers.get('content-type')).toBe(
      'text/javascript; charset=utf-8',
    )
    expect((await fetch(`${base}/client/../package.json`)).status).toBe(404)
    expect((await fetch(`${base}/nothing`)).status).toBe(404)
  })

  it('says which address is in use', async () => {
    const { port } = await start()
    const second = createServer({ transport, port, logLevel: 'silent' })
    await expect(second.start()).rejects.toMatchObject({ code: 'E_ADDRESS_IN_USE' })
    await second.stop()
  })

  itWhere(transport !== 'uws')('takes the upgrades of an http server that someone else owns', async () => {
    const server: WebMQServer = createServer({ transport, port: 0, logLevel: 'silent', closeTimeoutMs: 500 })
    ends.push(() => server.stop({ drainMs: 0 }))
    const httpServer = createHttpServer((request, response) => {
      if (request.url === '/health') server.handleRequest(request, response)
      else response.end('mine')
    })
    await new Promise<void>((resolve) => {
      httpServer.listen(0, '127.0.0.1', resolve)
    })
    ends.push(async () => {
      httpServer.closeAllConnections()
      httpServer.close()
    })
    const { port } = httpServer.address() as AddressInfo
    await server.attach(httpServer)
    const client = await connect(`ws://127.0.0.1:${port}/ws`)
    await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))
    await server.publish('k', 1)
    await client.until(() => client.payloads.length === 1)
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('mine')
    expect(await (await fetch(`http://127.0.0.1:${port}/health`)).json()).toMatchObject({ connections: 1 })
    await server.stop({ drainMs: 100 })
    await client.until(() => client.closure?.code === 4001)
    expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(503)
  })

  itWhere(transport === 'uws')('says that it cannot be attached', async () => {
    const server = createServer({ transport, port: 0, logLevel: 'silent' })
    ends.push(() => server.stop({ drainMs: 0 }))
    await expect(server.attach(createHttpServer())).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
  })
})
