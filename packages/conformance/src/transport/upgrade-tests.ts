import { describe, expect, it } from 'vitest'
import type { UpgradeId } from 'webmq-server/ports'
import { eventually } from './eventually.js'
import { Harness, type TestedTransport } from './harness.js'
import { handshakeHead } from './raw-client.js'
import type { TransportTraits } from './traits.js'

/** Invalid handshakes, and their status. */
const REFUSED: readonly [title: string, request: string, status: number][] = [
  ['without a key', handshakeHead('/', { 'Sec-WebSocket-Key': undefined }), 400],
  ['with a key that is not 16 bytes', handshakeHead('/', { 'Sec-WebSocket-Key': 'c2hvcnQ=' }), 400],
  ['with a key that is not base64', handshakeHead('/', { 'Sec-WebSocket-Key': '!!!!!!!!!!!!!!!!!!!!!!==' }), 400],
  ['with a key twice', handshakeHead('/', { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }), 400],
  ['without a version', handshakeHead('/', { 'Sec-WebSocket-Version': undefined }), 400],
  ['with version 8', handshakeHead('/', { 'Sec-WebSocket-Version': '8' }), 426],
  ['without Connection: Upgrade', handshakeHead('/', { Connection: 'keep-alive' }), 400],
  ['without Upgrade', handshakeHead('/', { Upgrade: undefined }), 400],
  ['by POST', handshakeHead('/').replace('GET', 'POST'), 405],
  ['with a body', handshakeHead('/', { 'Content-Length': '4' }), 400],
  ['with a subprotocol that is no token', handshakeHead('/', { 'Sec-WebSocket-Protocol': 'a b' }), 400],
]

/** Upgrade requests and their answers. */
export function upgradeTests(create: TestedTransport, traits: TransportTraits): void {
  describe('upgrade', () => {
    it('tells path, query, headers, subprotocols and address of the request as they were sent', async () => {
      const harness = await Harness.start(create)
      const client = await harness.connectSocket()
      const headers = { Origin: 'http://a.example', 'X-Mixed-Case': 'Value', 'X-Empty': '' }
      client.write(handshakeHead('/a%20b/c?x=1&y=%2F?', { ...headers, 'Sec-WebSocket-Protocol': 'one, two,three' }))
      await client.response()
      const [request] = harness.sink.upgrades
      expect(request).toMatchObject({
        path: '/a%20b/c',
        query: 'x=1&y=%2F?',
        subprotocols: ['one', 'two', 'three'],
        remoteAddress: '127.0.0.1',
      })
      expect(request?.headers).toMatchObject({
        host: 'localhost',
        origin: 'http://a.example',
        'x-mixed-case': 'Value',
        'x-empty': '',
        'sec-websocket-protocol': 'one, two,three',
      })
      expect(request?.remotePort).toBe(traits.remotePort ? client.socket.localPort : 0)
    })

    it('has empty strings and lists for what is absent', async () => {
      const harness = await Harness.start(create)
      const client = await harness.connectSocket()
      client.write(handshakeHead('/'))
      await client.response()
      expect(harness.sink.upgrades[0]).toMatchObject({ path: '/', query: '', subprotocols: [] })
      expect(harness.sink.upgrades[0]?.headers).not.toHaveProperty('cookie')
      expect(harness.sink.upgrades[0]?.header('cookie')).toBeUndefined()
    })

    it('takes nothing for a header that is none', async () => {
      const harness = await Harness.start(create)
      const client = await harness.connectSocket()
      client.write(handshakeHead('/origin:a?x-a:b', { 'X-B': 'x-a:b', 'X-C': '' }))
      await client.response()
      const [request] = harness.sink.upgrades
      for (const name of ['origin', 'x-a', 'b', '']) expect(request?.header(name), name).toBeUndefined()
      expect([request?.header('x-b'), request?.header('x-c')]).toEqual(['x-a:b', ''])
    })

    it('joins repeated headers with a comma, cookies with a semicolon and subprotocols in order', async () => {
      const harness = await Harness.start(create)
      const client = await harness.connectSocket()
      const repeated = ['X-A: 1', 'x-a: 2', 'Cookie: a=1', 'cookie: b=2; c=3', 'Sec-WebSocket-Protocol: one']
      const more = [...repeated, 'Sec-WebSocket-Protocol: two'].map((line) => `${line}\r\n`).join('')
      client.write(handshakeHead('/').replace('\r\n\r\n', `\r\n${more}\r\n`))
      await client.response()
      const request = harness.sink.upgrades[0]
      expect(request?.headers).toMatchObject({ 'x-a': '1, 2', cookie: 'a=1; b=2; c=3' })
      expect(request?.subprotocols).toEqual(['one', 'two'])
      expect(request?.header('x-a')).toBe('1, 2')
      expect(request?.header('cookie')).toBe('a=1; b=2; c=3')
    })

    it('takes a request head that arrives byte by byte', async () => {
      const harness = await Harness.start(create)
      const client = await harness.connectSocket()
      const head = handshakeHead('/slowly?a=b', { 'X-A': 'b' })
      const start = traits.takesSplitRequestLine ? 0 : head.indexOf('\r\n') + 2
      client.write(head.slice(0, start))
      for (const char of head.slice(start)) {
        client.write(char)
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect((await client.response()).status).toBe(101)
      expect(harness.sink.upgrades).toMatchObject([{ path: '/slowly', query: 'a=b', headers: { 'x-a': 'b' } }])
    })

    it('answers with the accept key, the subprotocol and the headers of accept', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        upgrade: ({ id }) =>
          transport.accept(id, { subprotocol: 'two', headers: { 'X-Node': 'a', 'set-cookie': 'b=c' } }),
      }))
      const client = await harness.connectSocket()
      client.write(handshakeHead('/', { 'Sec-WebSocket-Protocol': 'one, two' }))
      const { status, headers } = await client.response()
      expect(status).toBe(101)
      // Key and answer of RFC 6455 §1.3.
      expect(headers.get('sec-websocket-accept')).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
      expect(headers.get('upgrade')?.toLowerCase()).toBe('websocket')
      expect(headers.get('connection')?.toLowerCase()).toBe('upgrade')
      expect(headers.get('sec-websocket-protocol')).toBe('two')
      expect(headers.get('x-node')).toBe('a')
      expect(headers.get('set-cookie')).toBe('b=c')
      expect(headers.has('sec-websocket-extensions')).toBe(false)
    })

    it('names no subprotocol and no extension that was not chosen', async () => {
      const harness = await Harness.start(create)
      const client = await harness.connectSocket()
      const offers = { 'Sec-WebSocket-Protocol': 'one', 'Sec-WebSocket-Extensions': 'permessage-deflate' }
      client.write(handshakeHead('/', offers))
      const { headers } = await client.response()
      expect([...headers.keys()]).not.toContain('sec-websocket-protocol')
      expect([...headers.keys()]).not.toContain('sec-websocket-extensions')
    })

    it('waits for a decision that comes later', async () => {
      const harness = await Harness.start(create, {}, () => ({ upgrade: () => undefined }))
      const client = await harness.connectSocket()
      client.write(handshakeHead('/later'))
      await eventually(() => expect(harness.sink.upgrades).toHaveLength(1))
      const id = harness.sink.upgrades[0]?.id as UpgradeId
      setImmediate(() => harness.sink.calling(() => harness.transport.accept(id)))
      expect((await client.response()).status).toBe(101)
      const connection = await harness.connectionAt('/later')
      harness.transport.send(connection, 'hello', false)
      await eventually(() => expect(client.texts).toEqual(['hello']))
    })

    it('opens with the id of the upgrade, and sends what is sent from there', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        open: (connection, upgrade) => transport.send(connection, `welcome ${upgrade}`, false),
      }))
      const { client, connection } = await harness.connect()
      await eventually(() => expect(client.messages).toEqual([`welcome ${harness.sink.opened.get(connection)}`]))
    })

    it('gives every connection an id of its own, also after others have closed', async () => {
      const harness = await Harness.start(create)
      for (let round = 0; round < 5; round++) {
        const { client } = await harness.connect()
        client.destroy()
        await eventually(() => expect(harness.sink.closures).toHaveLength(round + 1))
      }
      // The recording sink reports an id that opens twice.
      expect(harness.sink.opened.size).toBe(5)
    })

    it.each(['at once', 'later'])('rejects %s with status, headers and body', async (when) => {
      const harness = await Harness.start(create, {}, (transport) => ({
        upgrade: ({ id }) => {
          const reject = () =>
            transport.reject(id, { status: 401, headers: { 'WWW-Authenticate': 'Bearer' }, body: 'E_X: why\n' })
          if (when === 'later') setImmediate(reject)
          else reject()
        },
      }))
      const client = await harness.connectSocket()
      client.write(handshakeHead('/'))
      const { status, headers } = await client.response()
      await client.ended()
      expect(status).toBe(401)
      expect(headers.get('www-authenticate')).toBe('Bearer')
      expect(client.body).toBe('E_X: why\n')
      expect(headers.get('content-length')).toBe('9')
      expect(harness.sink.opened.size).toBe(0)
      await eventually(() => expect(harness.transport.stats().refusedCount).toBe(1))
    })

    it('rejects without a body', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        upgrade: ({ id }) => transport.reject(id, { status: 404 }),
      }))
      const rejected = harness.connect()
      await expect(rejected).rejects.toThrow('404')
    })

    it('takes the first decision on an upgrade only', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        upgrade: ({ id }) => {
          transport.accept(id)
          transport.reject(id, { status: 403 })
          transport.accept(id)
        },
      }))
      await harness.connect()
      await harness.expectToServe()
      expect(harness.sink.opened.size).toBe(2)
    })

    it('ignores decisions on upgrades that it does not know', async () => {
      const harness = await Harness.start(create)
      harness.transport.accept(4_711 as UpgradeId)
      harness.transport.reject(4_712 as UpgradeId, { status: 403 })
      await harness.expectToServe()
    })

    it('does not open a connection whose client left before the decision', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        upgrade: ({ id, path }) => path !== '/leaves' && transport.accept(id),
      }))
      const client = await harness.connectSocket()
      client.write(handshakeHead('/leaves'))
      await eventually(() => expect(harness.sink.upgrades).toHaveLength(1))
      client.destroy()
      // Long enough for the transport to see the client leave, because it serves another one in the meantime.
      await harness.expectToServe()
      const id = harness.sink.upgrades[0]?.id as UpgradeId
      harness.transport.accept(id)
      await harness.expectToServe()
      const opened = [...harness.sink.opened].filter(([, upgrade]) => upgrade === id)
      // A transport may open it before it sees that the client has left; then it also closes it.
      for (const [connection] of opened) {
        await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1006))
      }
    })

    it.each(REFUSED)('refuses a handshake %s', async (_title, request, status) => {
      const harness = await Harness.start(create)
      const client = await harness.connectSocket()
      client.write(request)
      const response = await client.response()
      expect(response.status).toBe(status)
      if (status === 426) expect(response.headers.get('sec-websocket-version')).toBe('13')
      await eventually(() => expect(client.body).toContain('E_HANDSHAKE_INVALID'))
      await client.ended()
      expect(harness.sink.upgrades).toEqual([])
      await harness.expectToServe()
    })

    it.each([
      ['a line end in a value', { 'X-A': 'b\r\nX-Injected: c' }],
      ['a line end in a name', { 'X-A: b\r\nX-Injected': 'c' }],
    ])('never writes a header with %s, and says so to `failed`', async (_title, headers) => {
      const harness = await Harness.start(create, { handshakeTimeoutMs: 500 }, (transport) => ({
        upgrade: ({ id, path }) => transport.accept(id, path === '/bad' ? { headers } : {}),
      }))
      const client = await harness.connectSocket()
      client.write(handshakeHead('/bad'))
      await client.ended()
      expect(client.frames).toEqual([])
      expect((await client.response()).status).toBeGreaterThanOrEqual(400)
      expect((await client.response()).headers.has('x-injected')).toBe(false)
      await eventually(() => expect(harness.sink.failures).toHaveLength(1))
      await harness.expectToServe()
    })

    it('answers 500 and tells `failed` when the sink throws', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        upgrade: ({ id, path }) => {
          if (path === '/bug') throw new Error('a bug')
          transport.accept(id)
        },
      }))
      const client = await harness.connectSocket()
      client.write(handshakeHead('/bug'))
      expect((await client.response()).status).toBe(500)
      expect(client.body).not.toContain('a bug')
      await eventually(() => expect(harness.sink.failures).toHaveLength(1))
      await harness.expectToServe()
    })
  })
}
