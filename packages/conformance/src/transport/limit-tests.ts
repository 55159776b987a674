import { describe, expect, it } from 'vitest'
import type { UpgradeId } from 'webmq-server/ports'
import { eventually } from './eventually.js'
import { clientFrame, closeFrame, OPCODE } from './frames.js'
import { type CreateTransport, group, Harness } from './harness.js'
import { handshakeHead } from './raw-client.js'
import type { TransportTraits } from './traits.js'
import { WebSocketClient } from './web-socket-client.js'

const text = (payload: string) => clientFrame(OPCODE.text, payload)

/** Bytes that violate RFC 6455, and the close code (§7.4.1). */
const VIOLATIONS: readonly [title: string, bytes: Buffer, code: number][] = [
  ['a reserved bit', clientFrame(OPCODE.text, 'a', { reservedBits: 4 }), 1002],
  ['a reserved opcode', clientFrame(3, 'a'), 1002],
  ['a reserved control opcode', clientFrame(11, 'a'), 1002],
  ['a fragmented ping', clientFrame(OPCODE.ping, 'a', { isFinal: false }), 1002],
  ['a ping of 126 bytes', clientFrame(OPCODE.ping, 'a'.repeat(126)), 1002],
  ['a continuation of nothing', clientFrame(OPCODE.continuation, 'a'), 1002],
  ['a message inside a message', Buffer.concat([clientFrame(OPCODE.text, 'a', { isFinal: false }), text('b')]), 1002],
  ['a close frame of one byte', clientFrame(OPCODE.close, 'a'), 1002],
  ['a close code that may not be sent', closeFrame(1005), 1002],
  ['a close code that is out of range', closeFrame(999), 1002],
  ['a close reason that is not UTF-8', clientFrame(OPCODE.close, Buffer.from([3, 232, 0xff])), 1007],
  ['a text that is not UTF-8', clientFrame(OPCODE.text, Buffer.from([0xc3, 0x28])), 1007],
  ['a text that ends inside a character', clientFrame(OPCODE.text, Buffer.from([0xe2, 0x82])), 1007],
]

const UNMASKED: (typeof VIOLATIONS)[number] = [
  'a frame that is not masked',
  clientFrame(OPCODE.text, 'a', { isMasked: false }),
  1002,
]

/** Limits on received messages, on pending output, and on time. */
export function limitTests(create: CreateTransport, traits: TransportTraits): void {
  describe('limits', () => {
    it.each(traits.checksMasking ? [UNMASKED, ...VIOLATIONS] : VIOLATIONS)(
      'ends a connection that sends %s, and serves the others',
      async (_title, bytes, code) => {
        const harness = await Harness.start(create)
        const { client, connection } = await harness.connectRaw()
        client.write(bytes)
        await client.ended()
        if (traits.violationCloseFrames) expect(client.close?.code).toBe(code)
        await eventually(() => expect(harness.sink.closureOf(connection)).toBeDefined())
        expect(harness.sink.closureOf(connection)?.code).toBeOneOf(
          traits.violationCloseFrames ? [code] : [code, 1005, 1006],
        )
        expect(harness.sink.textsOf(connection)).toEqual([])
        await harness.expectToServe()
      },
    )

    it('takes a message of exactly `maxMessageBytes`, and closes with 1009 for one byte more', async () => {
      const harness = await Harness.start(create, { maxMessageBytes: 1_000 })
      const { client, connection } = await harness.connect()
      client.send('a'.repeat(1_000))
      client.send('b'.repeat(1_001))
      await expect(client.closed).resolves.toMatchObject({ code: 1009 })
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1009))
      expect(harness.sink.textsOf(connection)).toEqual(['a'.repeat(1_000)])
      await harness.expectToServe()
    })

    it('closes with 1009 when the fragments of a message exceed `maxMessageBytes` together', async () => {
      const harness = await Harness.start(create, { maxMessageBytes: 1_000 })
      const { client, connection } = await harness.connectRaw()
      client.write(clientFrame(OPCODE.text, 'a'.repeat(600), { isFinal: false }))
      client.write(clientFrame(OPCODE.continuation, 'a'.repeat(600)))
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1009))
      await client.ended()
      expect(client.close?.code).toBe(1009)
    })

    it('ends a connection that announces far more than `maxMessageBytes` before the bytes are there', async () => {
      const harness = await Harness.start(create, { maxMessageBytes: 1_000 })
      const { client, connection } = await harness.connectRaw()
      client.write(clientFrame(OPCODE.binary, 'a', { announcedBytes: 2 ** 40 }))
      await client.ended()
      if (traits.violationCloseFrames) expect(client.close?.code).toBe(1009)
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1009))
      await harness.expectToServe()
    })

    it('closes a peer that stops reading with 4008, while the others get every message', {
      timeout: 60_000,
    }, async () => {
      const maxOutboxBytes = 256 * 1024
      const harness = await Harness.start(create, { maxOutboxBytes, closeTimeoutMs: 40_000 })
      const { transport, sink } = harness
      const others = await harness.connectMany(20)
      const slow = await harness.connectRaw()
      slow.client.socket.pause()
      for (const { connection } of [...others, slow]) transport.join(connection, group(1))
      const payload = 'x'.repeat(16_000)
      let sentCount = 0
      let outboxPeakBytes = 0
      // The kernel takes some megabytes before the outbox fills.
      while (sink.closureOf(slow.connection) === undefined && sentCount < 4_000) {
        for (let index = 0; index < 4; index++) transport.multicast([group(1)], `${sentCount++} ${payload}`, false)
        await eventually(() => expect(others.every(({ client }) => client.messages.length === sentCount)).toBe(true))
        outboxPeakBytes = Math.max(outboxPeakBytes, transport.stats().outboxBytes)
      }
      expect(sink.closureOf(slow.connection)?.code).toBe(4008)
      expect(transport.stats().slowConsumerCount).toBe(1)
      // One turn may exceed the limit by what it adds.
      expect(outboxPeakBytes).toBeLessThanOrEqual(maxOutboxBytes + 5 * payload.length)
      for (const [index, { client }] of others.entries()) {
        const numbers = client.texts.map((message) => Number.parseInt(message, 10))
        expect(numbers, `client ${index}`).toEqual(Array.from({ length: sentCount }, (_, number) => number))
      }
      // If the peer reads again in time, it finds the queued messages, complete and in order, and then the code.
      slow.client.socket.resume()
      await slow.client.ended()
      expect(slow.client.close?.code).toBe(4008)
      expect(slow.client.texts.map((message) => Number.parseInt(message, 10))).toEqual(
        slow.client.texts.map((_, number) => number),
      )
    })

    it('does not take a burst for a slow consumer when the peer reads it', async () => {
      const harness = await Harness.start(create, { maxOutboxBytes: 1024 * 1024 })
      const { client, connection } = await harness.connect()
      // In one turn, before the peer could read anything: half of the limit.
      const texts = Array.from({ length: 500 }, (_, index) => `${index} ${'x'.repeat(1_000)}`)
      for (const text of texts) harness.transport.send(connection, text, false)
      await eventually(() => expect(client.messages.length).toBe(texts.length))
      expect(client.messages).toEqual(texts)
    })

    it('closes with 4008 when a single message is larger than the outbox and the kernel', async () => {
      const harness = await Harness.start(create, { maxOutboxBytes: 64 * 1024 })
      const { client, connection } = await harness.connectRaw()
      client.socket.pause()
      harness.transport.send(connection, Buffer.alloc(32 * 1024 * 1024), true)
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(4008))
      await harness.expectToServe()
    })

    it('tells when a connection has little or nothing left to read', { timeout: 60_000 }, async () => {
      const maxOutboxBytes = 16 * 1024 * 1024
      const harness = await Harness.start(create, { maxOutboxBytes })
      const { transport, sink } = harness
      const { client, connection } = await harness.connectRaw()
      transport.join(connection, group(1))
      const drainCount = async (count: number) => await eventually(() => expect(sink.drains).toHaveLength(count))
      sink.calling(() => transport.notifyDrained(connection, 'empty'))
      await drainCount(1)
      client.socket.pause()
      const payload = Buffer.alloc(64 * 1024)
      // The kernel takes some megabytes before the outbox fills.
      for (let index = 0; index < 1_000 && transport.stats().outboxBytes < maxOutboxBytes / 2; index++) {
        transport.send(connection, payload, true)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      sink.calling(() => transport.notifyDrained(connection, 'low'))
      transport.multicast([group(1)], 'later', false)
      await harness.expectToServe()
      expect(sink.drains).toHaveLength(1)
      client.socket.resume()
      await drainCount(2)
      expect(transport.stats().outboxBytes).toBeLessThanOrEqual(maxOutboxBytes / 4)
      sink.calling(() => transport.notifyDrained(connection, 'empty'))
      await drainCount(3)
      await eventually(() => expect(transport.stats().outboxBytes).toBe(0))
      expect(new Set(sink.drains)).toEqual(new Set([connection]))
      // One for a connection that is gone, or goes, is not answered.
      client.destroy()
      transport.notifyDrained(connection, 'empty')
      await eventually(() => expect(sink.closureOf(connection)).toBeDefined())
      transport.notifyDrained(connection, 'empty')
      await harness.expectToServe()
    })

    it('pings a silent peer after `pingIntervalMs`, and keeps it while it answers', async () => {
      const harness = await Harness.start(create, { pingIntervalMs: 60, pingTimeoutMs: 2_000 })
      const { client, connection } = await harness.connect()
      let pingCount = 0
      client.socket.on('ping', () => pingCount++)
      await eventually(() => expect(pingCount).toBeGreaterThanOrEqual(4))
      expect(harness.sink.isOpen(connection)).toBe(true)
    })

    it('drops a peer with 4003 that does not answer pings', async () => {
      const harness = await Harness.start(create, { pingIntervalMs: 60, pingTimeoutMs: 60, closeTimeoutMs: 200 })
      const { client, connection } = await harness.connectRaw()
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(4003))
      expect(client.frames[0]?.opcode).toBe(OPCODE.ping)
      await client.ended()
    })

    it('sends no ping to a peer that sends, nor when pings are off', async () => {
      const [talking, off] = await Promise.all([
        Harness.start(create, { pingIntervalMs: 800, pingTimeoutMs: 800 }),
        Harness.start(create, { pingIntervalMs: 0, pingTimeoutMs: 20 }),
      ])
      const talker = await talking.connectRaw()
      const silent = await off.connectRaw()
      const startedMs = performance.now()
      while (performance.now() - startedMs < 1_300) {
        talker.client.write(text('.'))
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      expect(talker.client.frames).toEqual([])
      expect(silent.client.frames).toEqual([])
      expect(off.sink.isOpen(silent.connection)).toBe(true)
    })

    it('answers 408 when the sink does not decide within `handshakeTimeoutMs`', async () => {
      const harness = await Harness.start(create, { handshakeTimeoutMs: 200 }, (transport) => ({
        upgrade: ({ id, path }) => path !== '/undecided' && transport.accept(id),
      }))
      const client = await harness.connectSocket()
      client.write(handshakeHead('/undecided'))
      expect((await client.response()).status).toBe(408)
      await client.ended()
      const id = harness.sink.upgrades[0]?.id as UpgradeId
      // A thread that has refused tells the event loop a moment later.
      await harness.expectToServe()
      harness.transport.accept(id)
      await harness.expectToServe()
      expect([...harness.sink.opened.values()]).not.toContain(id)
    })

    it('drops sockets that never complete a request head', { timeout: 30_000 }, async () => {
      const harness = await Harness.start(create, { handshakeTimeoutMs: 200 })
      const starts = ['', 'GET / HTTP/1.1\r\nHost: local', 'GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n']
      const clients = await Promise.all([...starts, 'GET / HTTP/1.1\r\n'].map(() => harness.connectSocket()))
      for (const [index, client] of clients.entries()) client.write(starts[index] ?? 'GET / HTTP/1.1\r\n')
      // The last one never ends.
      const drip = setInterval(() => clients.at(-1)?.write('X: y\r\n'), 50)
      await Promise.all(clients.map((client) => client.ended(traits.headTimeoutMs))).finally(() => clearInterval(drip))
      await harness.expectToServe()
    })

    it('answers 431 to a request head over `maxHeaderBytes`, and takes one below it', async () => {
      const harness = await Harness.start(create, { maxHeaderBytes: 2_000 })
      const large = await harness.connectSocket()
      large.write(handshakeHead('/', { 'X-Large': 'x'.repeat(2_000) }))
      expect((await large.response()).status).toBe(431)
      await large.ended()
      const small = await harness.connectSocket()
      small.write(handshakeHead('/', { 'X-Large': 'x'.repeat(1_500) }))
      expect((await small.response()).status).toBe(101)
    })

    it('answers 503 beyond `maxConnections`, upgrades in flight included, until one has closed', async () => {
      const harness = await Harness.start(create, { maxConnections: 2 }, (transport) => ({
        upgrade: ({ id, path }) => path !== '/waits' && transport.accept(id),
      }))
      const first = await harness.connect()
      const waiting = await harness.connectSocket()
      waiting.write(handshakeHead('/waits'))
      await eventually(() => expect(harness.sink.upgrades).toHaveLength(2))
      await expect(WebSocketClient.open(harness.url)).rejects.toThrow('503')
      await eventually(() => {
        expect(harness.transport.stats()).toMatchObject({ refusedCount: 1, fullCount: 1, connectionLimit: 2 })
      })
      first.client.close()
      await eventually(() => expect(harness.sink.closureOf(first.connection)).toBeDefined())
      await eventually(() => harness.connect())
      await expect(WebSocketClient.open(harness.url)).rejects.toThrow('503')
    })
  })
}
