import type { RequestOptions } from 'node:https'
import { describe, expect, it } from 'vitest'
import type { TransportOptions } from 'webmq-server/ports'
import { eventually } from './eventually.js'
import { type Connected, group, Harness, type TestedTransport } from './harness.js'
import type { SseClient } from './sse-client.js'

const PATH = '/sse'

/** Event streams: connections that only get bytes. */
export function sseTests(create: TestedTransport): void {
  const start = (options: Partial<TransportOptions> = {}, handlers?: Parameters<typeof Harness.start>[2]) =>
    Harness.start(create, { ssePath: PATH, ...options }, handlers)

  async function open(harness: Harness, options: RequestOptions = {}): Promise<Connected<SseClient>> {
    const seen = harness.sink.opened.size
    const client = harness.track(harness.requestStream(`${PATH}?n=${seen}`, options))
    await client.response()
    const connection = await eventually(() => {
      const request = harness.sink.upgrades.find(({ kind, query }) => kind === 'sse' && query === `n=${seen}`)
      for (const [opened, upgrade] of harness.sink.opened) if (upgrade === request?.id) return opened
      throw new Error('the stream is not open')
    })
    return { client, connection }
  }

  describe('event streams', () => {
    it('are told as upgrades, and answered with the head of a stream', async () => {
      const harness = await start({}, (transport) => ({
        upgrade: ({ id }) =>
          transport.accept(id, { headers: { 'access-control-allow-origin': 'https://app.example' } }),
      }))
      const { client } = await open(harness, { headers: { 'last-event-id': 'e:1', authorization: 'Bearer a' } })
      const [request] = harness.sink.upgrades
      expect(request).toMatchObject({ kind: 'sse', path: PATH, query: 'n=0', remoteAddress: '127.0.0.1' })
      expect(request?.header('last-event-id')).toBe('e:1')
      expect(request?.header('authorization')).toBe('Bearer a')
      const { statusCode, headers } = await client.response()
      expect(statusCode).toBe(200)
      expect(headers).toMatchObject({
        'content-type': 'text/event-stream',
        'cache-control': 'no-store, no-transform',
        'x-accel-buffering': 'no',
        'access-control-allow-origin': 'https://app.example',
      })
      expect(headers['content-length']).toBeUndefined()
    })

    it('get the bytes of messages as they are, beside WebSockets that get frames', async () => {
      const harness = await start()
      const { transport } = harness
      const stream = await open(harness)
      const other = await open(harness)
      const webSocket = await harness.connect()
      expect(harness.sink.upgrades.at(-1)?.kind).toBe('websocket')
      for (const { connection } of [stream, other, webSocket]) transport.join(connection, group(1))
      transport.join(stream.connection, group(2))
      transport.multicast([group(1), group(2)], 'data: grün\n\n', false)
      transport.send(stream.connection, Buffer.from('data: own\n\n'), true)
      transport.multicast([group(1)], Buffer.from('data: x\n\n'), true, other.connection)
      const source = { byteLength: 2, writeTo: (target: Uint8Array, at: number) => void target.fill(10, at, at + 2) }
      transport.leave(stream.connection, group(2))
      transport.multicast([group(2)], 'nobody', false)
      transport.multicast([group(1)], source, false)
      await eventually(() => expect(stream.client.body).toBe('data: grün\n\ndata: own\n\ndata: x\n\n\n\n'))
      await eventually(() => expect(other.client.body).toBe('data: grün\n\n\n\n'))
      await eventually(() => expect(webSocket.client.messages).toHaveLength(3))
      expect(webSocket.client.texts).toEqual(['data: grün\n\n', 'data: x\n\n', '\n\n'])
      expect(transport.stats()).toMatchObject({ connections: 3, acceptedCount: 3 })
    })

    it('are refused as the sink says', async () => {
      const harness = await start({}, (transport) => ({
        upgrade: ({ id }) => transport.reject(id, { status: 403, headers: { 'x-why': 'no' }, body: 'refused' }),
      }))
      const client = harness.track(harness.requestStream(PATH))
      const { statusCode, headers } = await client.response()
      expect([statusCode, headers['x-why']]).toEqual([403, 'no'])
      await eventually(() => expect(client.body).toBe('refused'))
      expect(harness.sink.opened.size).toBe(0)
    })

    it.each([
      ['content-type', 'text/plain'],
      ['connection', 'keep-alive'],
      ['x-bad', 'a\r\nb: c'],
    ])('answer 500 when the sink accepts with the header %s: %j', async (name, value) => {
      const harness = await start({}, (transport) => ({
        upgrade: ({ id }) => transport.accept(id, { headers: { [name]: value } }),
      }))
      const { statusCode } = await harness.track(harness.requestStream(PATH)).response()
      expect(statusCode).toBe(500)
      await eventually(() => expect(harness.sink.failures).toHaveLength(1))
    })

    it.each([
      ['another method', { method: 'POST' }, PATH, 426],
      ['another path', {}, `${PATH}/`, 426],
      ['a body', { headers: { 'content-length': '3' } }, PATH, 400],
    ])('are not what %s asks for', async (_what, options, path, status) => {
      const harness = await start()
      const client = harness.track(harness.requestStream(path, options))
      client.write('abc')
      expect((await client.response()).statusCode).toBe(status)
      expect(harness.sink.upgrades).toEqual([])
    })

    it('need a path to be named', async () => {
      const harness = await Harness.start(create)
      expect((await harness.track(harness.requestStream(PATH)).response()).statusCode).toBe(426)
      expect(harness.sink.upgrades).toEqual([])
    })

    it('count towards the limit of connections', async () => {
      const harness = await start({ maxConnections: 1 })
      const { client, connection } = await open(harness)
      const refused = harness.track(harness.requestStream(PATH))
      expect((await refused.response()).statusCode).toBe(503)
      await eventually(() => expect(refused.body).toContain('E_CONNECTION_LIMIT'))
      client.destroy()
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1006))
      await open(harness)
    })

    it('are answered with 408 when nobody decides in time', async () => {
      const harness = await start({ handshakeTimeoutMs: 1_000 }, () => ({ upgrade: () => undefined }))
      expect((await harness.track(harness.requestStream(PATH)).response()).statusCode).toBe(408)
      expect(harness.sink.opened.size).toBe(0)
    })

    it('end with everything that was queued, and the sink is told the code', async () => {
      const harness = await start()
      const { client, connection } = await open(harness)
      const large = 'x'.repeat(500_000)
      harness.transport.send(connection, large, false)
      harness.transport.send(connection, 'event: bye\n\n', false)
      harness.transport.close(connection, 4009, 'drain')
      harness.transport.send(connection, 'late', false)
      await eventually(() => expect(client.isEnded).toBe(true))
      expect(client.body).toBe(`${large}event: bye\n\n`)
      await eventually(() => expect(harness.sink.closures).toEqual([{ connection, code: 4009, reason: 'drain' }]))
    })

    it('end when the peer leaves', async () => {
      const harness = await start()
      const { client, connection } = await open(harness)
      client.destroy()
      await eventually(() => expect(harness.sink.closures).toEqual([{ connection, code: 1006, reason: '' }]))
    })

    it('end when the peer ends its side', async () => {
      const harness = await start()
      const peer = await harness.connectSocket()
      peer.write(`GET ${PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      await peer.response()
      peer.socket.end()
      await eventually(() => expect(harness.sink.closures).toHaveLength(1))
      expect(harness.sink.closures[0]?.code).toBe(1006)
    })

    it('end when the peer sends more than its request', async () => {
      const harness = await start()
      const { client } = await open(harness)
      const request = `GET ${PATH} HTTP/1.1\r\nHost: localhost\r\nx-filler: ${'x'.repeat(7_000)}\r\n\r\n`
      client.write(request)
      await eventually(() => expect(harness.sink.closures).toHaveLength(1))
      expect(harness.sink.upgrades).toHaveLength(1)
    })

    it('keep silent streams alive with comments', async () => {
      const harness = await start({ pingIntervalMs: 30, pingTimeoutMs: 10_000 })
      const { client, connection } = await open(harness)
      await eventually(() => expect(client.body.split(':\n\n').length).toBeGreaterThan(2))
      harness.transport.send(connection, 'data\n\n', false)
      await eventually(() => expect(client.events).toBe('data\n\n'))
    })

    it('drop a peer that takes nothing between two comments', async () => {
      const harness = await start({ pingIntervalMs: 100, pingTimeoutMs: 100, maxOutboxBytes: 64 * 1024 * 1024 })
      const { client, connection } = await open(harness)
      client.pause()
      harness.transport.send(connection, Buffer.alloc(32 * 1024 * 1024), true)
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(4003))
    })

    it('end with 4008 when a peer stops reading, and the others get everything', async () => {
      const harness = await start({ maxOutboxBytes: 256 * 1024 })
      const { transport, sink } = harness
      const slow = await open(harness)
      const reader = await open(harness)
      slow.client.pause()
      for (const { connection } of [slow, reader]) transport.join(connection, group(1))
      const event = `${'x'.repeat(64_000)}\n\n`
      let sentCount = 0
      // The kernel takes some megabytes before the outbox fills.
      while (sink.closureOf(slow.connection) === undefined && sentCount < 2_000) {
        transport.multicast([group(1)], event, false)
        sentCount++
        await eventually(() => expect(reader.client.body.length).toBe(sentCount * event.length))
      }
      expect(sink.closureOf(slow.connection)?.code).toBe(4008)
      expect(transport.stats().slowConsumerCount).toBe(1)
      expect(sink.isOpen(reader.connection)).toBe(true)
    })

    it('tell when little or nothing waits', async () => {
      const harness = await start({ maxOutboxBytes: 64 * 1024 * 1024 })
      const { client, connection } = await open(harness)
      harness.sink.calling(() => harness.transport.notifyDrained(connection, 'empty'))
      await eventually(() => expect(harness.sink.drains).toHaveLength(1))
      client.pause()
      harness.transport.send(connection, Buffer.alloc(32 * 1024 * 1024), true)
      harness.sink.calling(() => harness.transport.notifyDrained(connection, 'empty'))
      await harness.expectToServe()
      expect(harness.sink.drains).toHaveLength(1)
      client.resume()
      await eventually(() => expect(harness.sink.drains).toHaveLength(2))
    })

    it('end when the transport stops', async () => {
      const harness = await start()
      const { client, connection } = await open(harness)
      await harness.transport.stop()
      await eventually(() => expect(client.isEnded).toBe(true))
      expect(harness.sink.closureOf(connection)?.code).toBe(1001)
    })

    it('serve clients of HTTP/1.0', async () => {
      const harness = await start()
      const peer = await harness.connectSocket()
      peer.write(`GET ${PATH} HTTP/1.0\r\nHost: localhost\r\n\r\n`)
      expect((await peer.response()).status).toBe(200)
    })
  })
}
