import { createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ConnectionId, TransportOptions, UpgradeId } from 'webmq-server/ports'
import { eventually } from './eventually.js'
import { type CreateTransport, DEFAULT_OPTIONS, group, Harness } from './harness.js'
import { handshakeHead, RawClient } from './raw-client.js'
import { RecordingSink } from './recording-sink.js'
import { WebSocketClient } from './web-socket-client.js'

/** RFC 5737: nobody has this address. */
const FOREIGN_ADDRESS = '203.0.113.1'

/** Start, stop and counters. */
export function lifecycleTests(create: CreateTransport): void {
  const startFails = async (options: Partial<TransportOptions>, code: string) => {
    const transport = create({ ...DEFAULT_OPTIONS, ...options })
    onTestFinished(() => transport.stop())
    await expect(transport.start(new RecordingSink())).rejects.toMatchObject({ name: 'WebMQError', code })
  }

  describe('start', () => {
    it('takes a free port for port 0 and says which', async () => {
      const harness = await Harness.start(create)
      expect(harness.address).toEqual({ host: '127.0.0.1', port: expect.any(Number) })
      expect(harness.port).toBeGreaterThan(0)
      await harness.expectToServe()
    })

    it('refuses to start twice, and goes on', async () => {
      const harness = await Harness.start(create)
      await expect(harness.transport.start(new RecordingSink())).rejects.toMatchObject({ name: 'WebMQError' })
      await harness.expectToServe()
    })

    it('fails with E_ADDRESS_IN_USE when another transport has the port', async () => {
      const { port } = await Harness.start(create)
      await startFails({ port }, 'E_ADDRESS_IN_USE')
    })

    it('fails with E_ADDRESS_IN_USE when another server has the port', async () => {
      const other = createServer()
      onTestFinished(() => void other.close())
      const port = await new Promise<number>((resolve) => {
        other.listen(0, '127.0.0.1', () => {
          const address = other.address()
          resolve(typeof address === 'object' && address !== null ? address.port : 0)
        })
      })
      await startFails({ port }, 'E_ADDRESS_IN_USE')
    })

    it('fails with E_ADDRESS_UNAVAILABLE for an address of another machine', async () => {
      await startFails({ host: FOREIGN_ADDRESS }, 'E_ADDRESS_UNAVAILABLE')
    })

    it('fails with E_OPTION_INVALID for a port that does not exist', async () => {
      await startFails({ port: 65_536 }, 'E_OPTION_INVALID')
    })

    it('runs beside other transports of the process', async () => {
      const harnesses = await Promise.all([1, 2, 3].map(() => Harness.start(create)))
      const members = await Promise.all(harnesses.map((harness) => harness.connect()))
      for (const [index, harness] of harnesses.entries()) {
        harness.transport.join(members[index]?.connection as ConnectionId, group(1))
        harness.transport.multicast([group(1)], `transport ${index}`, false)
      }
      for (const [index, { client }] of members.entries()) {
        await eventually(() => expect(client.messages).toEqual([`transport ${index}`]))
      }
    })
  })

  describe('stopAccepting', () => {
    it('refuses new connections, and goes on with those it has', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      await harness.transport.stopAccepting()
      await harness.transport.stopAccepting()
      await expect(RawClient.connect(harness.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
      client.send('up')
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['up']))
      harness.transport.send(connection, 'down', false)
      await eventually(() => expect(client.messages).toEqual(['down']))
    })
  })

  describe('stop', () => {
    it('closes every connection with 1001, and tells of every end before it resolves', async () => {
      const harness = await Harness.start(create)
      const clients = await harness.connectMany(20)
      await harness.transport.stop()
      expect(harness.sink.closures).toHaveLength(20)
      await expect(RawClient.connect(harness.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
      for (const { client } of clients) await expect(client.closed).resolves.toMatchObject({ code: 1001 })
      expect(harness.transport.stats().connections).toBe(0)
    })

    it('sends what is queued first', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      const texts = Array.from({ length: 200 }, (_, index) => `${index}`)
      for (const text of texts) harness.transport.send(connection, text, false)
      await harness.transport.stop()
      await expect(client.closed).resolves.toMatchObject({ code: 1001 })
      expect(client.messages).toEqual(texts)
    })

    it('does not wait longer than `closeTimeoutMs` for peers that do not answer', async () => {
      const harness = await Harness.start(create, { closeTimeoutMs: 200 })
      const { client, connection } = await harness.connectRaw()
      await harness.transport.stop()
      expect(harness.sink.closureOf(connection)).toBeDefined()
      await client.ended()
      expect(client.close?.code).toBe(1001)
    })

    it('destroys what is left after its limit, and tells of every end before it resolves', async () => {
      const harness = await Harness.start(create, { closeTimeoutMs: 60_000 })
      const { client, connection } = await harness.connectRaw()
      const others = await harness.connectMany(3)
      harness.transport.close(connection, 4001, '')
      await eventually(() => expect(client.close?.code).toBe(4001))
      await harness.transport.stop(100)
      expect(harness.sink.closures).toHaveLength(1 + others.length)
      expect(harness.transport.stats().connections).toBe(0)
      await expect(RawClient.connect(harness.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    })

    it('refuses upgrades that wait for a decision', async () => {
      const harness = await Harness.start(create, {}, () => ({ upgrade: () => undefined }))
      const client = await harness.connectSocket()
      client.write(handshakeHead('/'))
      await eventually(() => expect(harness.sink.upgrades).toHaveLength(1))
      await harness.transport.stop()
      await client.ended()
      expect(client.frames).toEqual([])
      harness.transport.accept(harness.sink.upgrades[0]?.id as UpgradeId)
      expect(harness.sink.opened.size).toBe(0)
    })

    it('may be called again, at once and later, and before the start', async () => {
      const harness = await Harness.start(create)
      await harness.connect()
      await Promise.all([harness.transport.stop(), harness.transport.stop()])
      await harness.transport.stop()
      const never = create(DEFAULT_OPTIONS)
      await never.stopAccepting()
      await never.stop()
    })

    it('frees its port', async () => {
      const harness = await Harness.start(create)
      await harness.transport.stop()
      const next = await Harness.start(create, { port: harness.port })
      await next.expectToServe()
    })

    it('makes every later call do nothing', async () => {
      const harness = await Harness.start(create)
      const { connection } = await harness.connect()
      const { transport } = harness
      await transport.stop()
      transport.send(connection, 'x', false)
      transport.join(connection, group(1))
      transport.leave(connection, group(1))
      transport.multicast([group(1)], 'x', false)
      transport.close(connection, 1000, '')
      expect(transport.stats().connections).toBe(0)
      expect(harness.sink.closures).toHaveLength(1)
    })
  })

  describe('stats', () => {
    it('count what happens', async () => {
      const harness = await Harness.start(create)
      const { transport } = harness
      expect(transport.stats()).toMatchObject({ connections: 0, acceptedCount: 0, deliveredCount: 0, outboxBytes: 0 })
      const [first, second] = await harness.connectMany(2)
      if (first === undefined || second === undefined) throw new Error('two clients were asked for')
      for (const { connection } of [first, second]) transport.join(connection, group(1))
      transport.multicast([group(1)], 'x'.repeat(1_000), false)
      transport.send(first.connection, 'y', false)
      first.client.send('z'.repeat(2_000))
      await eventually(() => expect(first.client.messages).toHaveLength(2))
      await eventually(() => expect(second.client.messages).toHaveLength(1))
      await eventually(() => {
        const stats = transport.stats()
        expect(stats).toMatchObject({
          connections: 2,
          acceptedCount: 2,
          closedCount: 0,
          slowConsumerCount: 0,
          partialBytes: 0,
          answeredMessageCount: 0,
          restartedThreadCount: 0,
          receivedMessageCount: 1,
          deliveredCount: 3,
          outboxBytes: 0,
        })
        expect(stats.sentByteCount).toBeGreaterThanOrEqual(2_001)
        expect(stats.receivedByteCount).toBeGreaterThanOrEqual(2_000)
      })
      first.client.close()
      await eventually(() =>
        expect(transport.stats()).toMatchObject({ connections: 1, acceptedCount: 2, closedCount: 1 }),
      )
    })

    it('count refused upgrades', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        upgrade: ({ id }) => transport.reject(id, { status: 403 }),
      }))
      await expect(WebSocketClient.open(harness.url)).rejects.toThrow('403')
      await eventually(() => expect(harness.transport.stats()).toMatchObject({ refusedCount: 1, acceptedCount: 0 }))
    })
  })
}
