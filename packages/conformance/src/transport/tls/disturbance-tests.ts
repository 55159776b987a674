import { randomBytes } from 'node:crypto'
import { connect as connectTcp } from 'node:net'
import { Duplex } from 'node:stream'
import { connect } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { eventually } from '../eventually.js'
import { Harness, SERVER_NAME, type TestedTransport } from '../harness.js'
import { handshakeHead } from '../raw-client.js'
import type { TransportTraits } from '../traits.js'

/** The first message of a client (RFC 8446 §4.1.2), with its record. */
async function clientHello(): Promise<Buffer> {
  return await new Promise((resolve) => {
    const wire = new Duplex({
      // No answer comes.
      read: () => undefined,
      write: (bytes: Buffer) => resolve(bytes),
    })
    connect({ socket: wire, servername: SERVER_NAME })
  })
}

/** The header of a record of application data with 32 bytes. */
const APPLICATION_DATA = Buffer.from([23, 3, 3, 0, 32])

/** Peers that speak no TLS, wrong TLS, or stop in the middle of it. */
export function disturbanceTests(create: TestedTransport, traits: TransportTraits): void {
  describe('disturbances', () => {
    const GARBAGE: readonly (readonly [string, () => Buffer])[] = [
      ['a plain HTTP request', () => Buffer.from('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')],
      ['random bytes', () => randomBytes(4_096)],
      ['a record that is too long', () => Buffer.concat([Buffer.from([22, 3, 1, 0xff, 0xff]), Buffer.alloc(70_000)])],
      ['a record of application data first', () => Buffer.concat([APPLICATION_DATA, Buffer.alloc(32)])],
      ['an alert first', () => Buffer.from([21, 3, 3, 0, 2, 2, 80])],
    ]

    it.each(GARBAGE)('ends a connection that sends %s, and serves the others', async (_title, bytes) => {
      const harness = await Harness.start(create, { handshakeTimeoutMs: 1_000 })
      const member = await harness.connect()
      const client = await harness.connectTcp()
      client.write(bytes())
      await client.ended(traits.headTimeoutMs)
      expect(harness.sink.upgrades).toHaveLength(1)
      member.client.send('up')
      await eventually(() => expect(harness.sink.textsOf(member.connection)).toEqual(['up']))
      await harness.expectToServe()
    })

    it('ends connections that stop before, in and after the TLS handshake, within their time', {
      timeout: 60_000,
    }, async () => {
      const harness = await Harness.start(create, { handshakeTimeoutMs: 500 })
      const hello = await clientHello()
      const silent = await harness.connectTcp()
      const [half, whole] = [await harness.connectTcp(), await harness.connectTcp()]
      half.write(hello.subarray(0, hello.length / 2))
      whole.write(hello)
      const idle = await harness.connectSocket()
      const member = await harness.connect()
      await Promise.all([silent, half, whole, idle].map((client) => client.ended(traits.headTimeoutMs)))
      expect(harness.sink.upgrades).toHaveLength(1)
      expect(harness.sink.isOpen(member.connection)).toBe(true)
      await harness.expectToServe()
    })

    it('takes a handshake byte by byte', async () => {
      const harness = await Harness.start(create)
      const slow = await harness.connectTcp()
      for (const byte of await clientHello()) slow.write(Buffer.of(byte))
      // Its answer: the first record of the server is one of the handshake.
      await eventually(() => expect(slow.body.charCodeAt(0)).toBe(22))
    })

    it('ends a connection that sends a broken record later', async () => {
      const harness = await Harness.start(create)
      const member = await harness.connect()
      // TLS through a stream of JavaScript leaves the TCP socket to this test too.
      const tcp = harness.track(connectTcp({ port: harness.port, host: '127.0.0.1' }))
      const tls = connect({ socket: Duplex.from({ readable: tcp, writable: tcp }), rejectUnauthorized: false })
      tls.on('error', () => undefined)
      tls.write(handshakeHead('/broken'))
      const connection = await harness.connectionAt('/broken')
      tcp.write(Buffer.concat([APPLICATION_DATA, Buffer.alloc(32)]))
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1006))
      expect(harness.sink.isOpen(member.connection)).toBe(true)
    })

    it('serves its members while many disturb it', async () => {
      const harness = await Harness.start(create, { handshakeTimeoutMs: 1_000 })
      const member = await harness.connect()
      const crowd = await Promise.all(Array.from({ length: 100 }, () => harness.connectTcp()))
      for (const client of crowd) client.write(randomBytes(200))
      await harness.expectToServe()
      harness.transport.send(member.connection, 'down', false)
      await eventually(() => expect(member.client.messages).toEqual(['down']))
    })
  })
}
