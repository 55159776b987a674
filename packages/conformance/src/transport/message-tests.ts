import { describe, expect, it } from 'vitest'
import type { ConnectionId } from 'webmq-server/ports'
import { eventually } from './eventually.js'
import { clientFrame, OPCODE } from './frames.js'
import { Harness, type TestedTransport } from './harness.js'
import { patternBytes } from './pattern-bytes.js'

/** Sizes where RFC 6455 §5.2 changes the length's encoding, and where buffers usually end. */
const SIZES = [0, 1, 125, 126, 127, 4_096, 16_384, 65_535, 65_536, 200_000]

function textOf(bytes: number): string {
  return 'abcdefghij'.repeat(Math.ceil(bytes / 10)).slice(0, bytes)
}

/** Messages in and out. */
export function messageTests(create: TestedTransport): void {
  /** Echoes every message. */
  const echo = () =>
    Harness.start(create, {}, (transport) => ({
      message: (connection, data, isBinary) => transport.send(connection, data, isBinary),
    }))

  describe('messages', () => {
    it.each(SIZES)('carries texts of %i bytes both ways', async (bytes) => {
      const harness = await echo()
      const { client, connection } = await harness.connect()
      client.send(textOf(bytes))
      await eventually(() => expect(client.messages.length).toBe(1))
      expect(client.messages[0]).toBe(textOf(bytes))
      expect(harness.sink.messages).toMatchObject([{ connection, isBinary: false }])
    })

    it.each(SIZES)('carries binary messages of %i bytes both ways', async (bytes) => {
      const harness = await echo()
      const { client, connection } = await harness.connect()
      const data = patternBytes(bytes)
      client.send(data)
      await eventually(() => expect(client.messages.length).toBe(1))
      expect(data.equals(client.messages[0] as Buffer)).toBe(true)
      expect(harness.sink.messages).toMatchObject([{ connection, isBinary: true }])
    })

    it('carries every kind of text', async () => {
      const harness = await echo()
      const { client } = await harness.connect()
      const texts = ['ä', '€', '😀', '\0', '\u{10ffff}', 'e\u0301', 'line\nline']
      for (const text of texts) client.send(text)
      await eventually(() => expect(client.messages).toEqual(texts))
    })

    it('sends a string and its UTF-8 bytes as the same text', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      harness.transport.send(connection, 'grün', false)
      harness.transport.send(connection, new TextEncoder().encode('grün'), false)
      await eventually(() => expect(client.messages).toEqual(['grün', 'grün']))
    })

    it('sends a part of a larger buffer', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      harness.transport.send(connection, new TextEncoder().encode('not this').subarray(4), true)
      await eventually(() => expect(client.messages).toEqual([Buffer.from('this')]))
    })

    it('has copied what it sends when the call returns', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      const small = new Uint8Array(100).fill(1)
      const large = new Uint8Array(100_000).fill(1)
      harness.transport.send(connection, small, true)
      harness.transport.send(connection, large, true)
      small.fill(2)
      large.fill(2)
      await eventually(() => expect(client.messages.length).toBe(2))
      const expected = [Buffer.alloc(100, 1), Buffer.alloc(100_000, 1)]
      // `toEqual` takes a second for that many bytes.
      expect(client.messages.map((data, index) => expected[index]?.equals(data as Buffer))).toEqual([true, true])
    })

    it('sends a message that is larger than what the kernel takes, at the pace of the peer, unbroken', async () => {
      const harness = await Harness.start(create, { maxOutboxBytes: 64 * 1024 * 1024 })
      const { client, connection } = await harness.connect()
      client.socket.pause()
      const data = patternBytes(12_000_000)
      // Alone in its turn, then among others, because transports write these differently.
      harness.transport.send(connection, data, true)
      await harness.expectToServe()
      for (const message of ['before', data, 'after']) harness.transport.send(connection, message, true)
      await harness.expectToServe()
      client.socket.resume()
      await eventually(() => expect(client.messages.length).toBe(4))
      const [alone, before, among, after] = client.messages
      expect([before, after]).toEqual(['before', 'after'])
      expect([alone, among].every((message) => data.equals(message as Buffer))).toBe(true)
    })

    it('keeps the order of messages of a connection, both ways', async () => {
      const harness = await echo()
      const { client, connection } = await harness.connect()
      const texts = Array.from({ length: 3_000 }, (_, index) => `${index}`)
      for (const text of texts) client.send(text)
      await eventually(() => expect(client.messages.length).toBe(texts.length))
      expect(harness.sink.textsOf(connection)).toEqual(texts)
      expect(client.messages).toEqual(texts)
    })

    it('puts fragments together, with a ping answered in between', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connectRaw()
      client.write(clientFrame(OPCODE.text, 'a', { isFinal: false }))
      client.write(clientFrame(OPCODE.continuation, 'b', { isFinal: false }))
      client.write(clientFrame(OPCODE.ping, 'between'))
      client.write(clientFrame(OPCODE.continuation, '', { isFinal: false }))
      client.write(clientFrame(OPCODE.continuation, 'c'))
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['abc']))
      expect(harness.sink.messages[0]?.isBinary).toBe(false)
      await eventually(() => expect(client.frames).toMatchObject([{ opcode: OPCODE.pong }]))
      expect(client.frames[0]?.payload.toString()).toBe('between')
    })

    it('puts a text together whose characters are split between fragments', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connectRaw()
      const bytes = Buffer.from('😀€')
      for (const [index, byte] of bytes.entries()) {
        const opcode = index === 0 ? OPCODE.text : OPCODE.continuation
        client.write(clientFrame(opcode, Buffer.from([byte]), { isFinal: index === bytes.length - 1 }))
      }
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['😀€']))
    })

    it('takes frames that arrive byte by byte, and many that arrive at once', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connectRaw()
      for (const byte of clientFrame(OPCODE.text, 'slowly')) {
        client.write(Buffer.from([byte]))
        await new Promise((resolve) => setImmediate(resolve))
      }
      const texts = Array.from({ length: 500 }, (_, index) => `${index}`)
      client.write(Buffer.concat(texts.map((text) => clientFrame(OPCODE.text, text))))
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['slowly', ...texts]))
    })

    it('does nothing when it is told to send to a connection that has closed, or never was', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      client.destroy()
      await eventually(() => expect(harness.sink.closureOf(connection)).toBeDefined())
      for (const gone of [connection, 4_711 as ConnectionId]) {
        harness.transport.send(gone, 'anyone?', false)
        harness.transport.close(gone, 1000, '')
      }
      await harness.expectToServe()
      expect(harness.sink.closures.filter((closure) => closure.connection === connection)).toHaveLength(1)
    })
  })
}
