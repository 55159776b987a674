import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { TransportCapabilities } from 'webmq-server/ports'
import { itWhere } from '../../applies.js'
import { eventually } from '../eventually.js'
import { clientFrame, OPCODE } from '../frames.js'
import { group, Harness, type TestedTransport } from '../harness.js'
import { patternBytes } from '../pattern-bytes.js'
import { handshakeHead } from '../raw-client.js'
import type { TransportTraits } from '../traits.js'

/** RFC 8446 §5.1: the largest record. */
const RECORD_BYTES = 16 * 1024
const text = (payload: string) => clientFrame(OPCODE.text, payload)

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function fetchFrom(port: number, options: RequestOptions, body?: Uint8Array) {
  const outgoing = request({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const { localPort } = response.socket
  return { localPort, body: await bodyOf(response) }
}

/** Messages and HTTP over TLS, where records and messages do not begin and end together. */
export function trafficTests(create: TestedTransport, expected: TransportCapabilities, traits: TransportTraits): void {
  describe('traffic', () => {
    it('brings many messages and large ones to every member, whole and in order', async () => {
      const harness = await Harness.start(create, { maxOutboxBytes: 16 * 1024 * 1024 })
      const members = await harness.connectMany(10)
      for (const { connection } of members) harness.transport.join(connection, group(1))
      const sizes = [1, RECORD_BYTES - 2, RECORD_BYTES - 1, RECORD_BYTES, RECORD_BYTES + 1, 3, 100_000, 2, 1_000_000, 1]
      const messages = [...sizes, ...Array<number>(1_000).fill(60), ...sizes].map(patternBytes)
      for (const message of messages) harness.transport.multicast([group(1)], message, true)
      const bytes = Buffer.concat(messages)
      for (const { client } of members) {
        await eventually(() => expect(client.messages).toHaveLength(messages.length))
        expect(client.messages.map(({ length }) => length)).toEqual(messages.map(({ length }) => length))
        expect(Buffer.concat(client.messages as Buffer[]).equals(bytes)).toBe(true)
      }
    })

    it('takes a message in many records, and many messages in one', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connectRaw()
      const texts = ['a', 'b'.repeat(126), 'c'.repeat(1_000)]
      const bytes = Buffer.concat(texts.map(text))
      client.write(bytes)
      for (let start = 0; start < bytes.length; start += 7) client.write(bytes.subarray(start, start + 7))
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual([...texts, ...texts]))
    })

    it('takes a request head in several records', async () => {
      const harness = await Harness.start(create)
      const client = await harness.connectSocket()
      const head = handshakeHead('/in-parts')
      const line = head.indexOf('\r\n') + 2
      for (const part of [head.slice(0, line), head.slice(line, line + 20), head.slice(line + 20)]) {
        client.write(part)
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect((await client.response()).status).toBe(101)
    })

    it('tells the address of the client, of upgrades and of requests', async () => {
      const httpServer = createServer(({ socket }, response) => {
        const { remoteAddress, remotePort } = socket
        const encrypted = 'encrypted' in socket && socket.encrypted === true
        response.end(JSON.stringify({ remoteAddress, remotePort, encrypted }))
      })
      const harness = await Harness.start(create, { httpServer })
      const { client } = await harness.connectRaw()
      expect(harness.sink.upgrades[0]).toMatchObject({ remoteAddress: '127.0.0.1' })
      if (traits.remotePort) expect(harness.sink.upgrades[0]?.remotePort).toBe(client.socket.localPort)
      const agent = new Agent({ keepAlive: true })
      onTestFinished(() => agent.destroy())
      const ports = new Set<number | undefined>()
      for (let count = 0; count < 3; count++) {
        const { localPort, body } = await fetchFrom(harness.port, { agent })
        expect(JSON.parse(body.toString())).toMatchObject({ remoteAddress: '127.0.0.1', encrypted: true })
        if (traits.remotePort) expect(JSON.parse(body.toString()).remotePort).toBe(localPort)
        ports.add(localPort)
      }
      // One connection for all of them.
      expect(ports.size).toBe(1)
    })

    it('carries large bodies of HTTP both ways, while messages flow', async () => {
      const httpServer = createServer(async (incoming, response) => response.end(await bodyOf(incoming)))
      const harness = await Harness.start(create, { httpServer })
      const { client, connection } = await harness.connect()
      const sent = patternBytes(2_000_000)
      const answers = [1, 2, 3].map(() => fetchFrom(harness.port, { method: 'POST', agent: false }, sent))
      for (let index = 0; index < 100; index++) harness.transport.send(connection, `${index}`, false)
      for (const { body } of await Promise.all(answers)) expect(body.equals(sent)).toBe(true)
      await eventually(() => expect(client.messages).toHaveLength(100))
    })

    it('closes a peer that stops reading with 4008, while the others get every message', {
      timeout: 60_000,
    }, async () => {
      const harness = await Harness.start(create, { maxOutboxBytes: 256 * 1024, closeTimeoutMs: 40_000 })
      const { transport, sink } = harness
      const others = await harness.connectMany(3)
      const slow = await harness.connectRaw()
      slow.client.socket.pause()
      for (const { connection } of [...others, slow]) transport.join(connection, group(1))
      const payload = 'x'.repeat(60_000)
      let sentCount = 0
      // The kernel takes some megabytes before the outbox fills.
      while (sink.closureOf(slow.connection) === undefined && sentCount < 1_000) {
        transport.multicast([group(1)], `${sentCount++} ${payload}`, false)
        await eventually(() => expect(others.every(({ client }) => client.messages.length === sentCount)).toBe(true))
      }
      expect(sink.closureOf(slow.connection)?.code).toBe(4008)
      expect(transport.stats().slowConsumerCount).toBe(1)
    })

    itWhere(expected.pause)('keeps what it has decrypted while a connection is paused', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        message: (connection, data) => {
          if (data.byteLength === 1) harness.sink.calling(() => transport.pause(connection))
        },
      }))
      const { client, connection } = await harness.connectRaw()
      const texts = Array.from({ length: 50 }, (_, index) => `${index}`.padStart(3, '0'))
      // One record, whose first message pauses the connection: no byte of the rest waits in the socket.
      client.write(Buffer.concat(['!', ...texts].map(text)))
      await eventually(() => expect(harness.sink.textsOf(connection)[0]).toBe('!'))
      await harness.expectToServe()
      harness.transport.resume(connection)
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['!', ...texts]))
    })

    it('tells 1006 when the peer ends TLS without a close frame', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connectRaw()
      client.socket.end()
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1006))
      await client.ended()
    })

    it('ends the TCP connection after the close handshake', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      harness.transport.close(connection, 4001, 'done')
      await expect(client.closed).resolves.toEqual({ code: 4001, reason: 'done' })
      await eventually(() => expect(harness.transport.stats().connections).toBe(0))
    })
  })
}
