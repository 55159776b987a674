import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { ConnectionId } from 'webmq-server/ports'
import { bomb, deflated, inflated } from './deflate.js'
import { eventually } from './eventually.js'
import { clientFrame, OPCODE } from './frames.js'
import { type Connected, type CreateTransport, group, Harness } from './harness.js'
import type { RawClient } from './raw-client.js'
import type { TransportTraits } from './traits.js'
import type { WebSocketClient } from './web-socket-client.js'

const THRESHOLD_BYTES = 1_000
const ON = { compression: { thresholdBytes: THRESHOLD_BYTES } }
const OFFER = { 'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits' }
/** RSV1. */
const COMPRESSED = { reservedBits: 4 }
/** Memory that a transport may hold for messages that it will refuse; far below their inflated size. */
const MAX_GROWTH_BYTES = 48 * 1024 * 1024

const ACCEPTED = ['client_no_context_takeover', 'permessage-deflate', 'server_no_context_takeover']

/** Offers, and the parts of the answer in alphabetical order; `undefined`: declined. */
const OFFERS: readonly [offer: string, answer: readonly string[] | undefined][] = [
  ['permessage-deflate', ACCEPTED],
  ['permessage-deflate; client_max_window_bits', ACCEPTED],
  ['permessage-deflate;client_max_window_bits=10', ACCEPTED],
  ['permessage-deflate; server_no_context_takeover; client_no_context_takeover', ACCEPTED],
  ['permessage-bzip2, permessage-deflate; server_max_window_bits=10, permessage-deflate', ACCEPTED],
  ['permessage-deflate; server_max_window_bits=10', undefined],
  ['permessage-deflate; client_max_window_bits=7', undefined],
  ['permessage-deflate; client_no_context_takeover=1', undefined],
  ['permessage-deflate; client_no_context_takeover; client_no_context_takeover', undefined],
  ['permessage-deflate; unknown', undefined],
  ['x-webkit-deflate-frame', undefined],
]

/** permessage-deflate (RFC 7692), off and on. */
export function compressionTests(create: CreateTransport, traits: TransportTraits): void {
  const answerOf = async ({ client }: Connected<RawClient>) => (await client.response()).headers.get(EXTENSIONS)

  /** Echoes every message. */
  const echo = () =>
    Harness.start(create, ON, (transport) => ({
      message: (connection, data, isBinary) => transport.send(connection, data, isBinary),
    }))

  /** Connects a client that compresses everything it sends. */
  const connectCompressing = async (harness: Harness): Promise<Connected<WebSocketClient>> => {
    const connected = await harness.connect({ perMessageDeflate: { threshold: 0 } })
    expect(connected.client.socket.extensions).toContain('permessage-deflate')
    return connected
  }

  /** Expects the close code of a violation. Without a close frame, 1006 or `otherCode` are allowed. */
  const expectRefusal = async (harness: Harness, refused: Connected<RawClient>, code: number, otherCode = code) => {
    const { client, connection } = refused
    await client.ended()
    if (traits.violationCloseFrames) expect(client.close?.code).toBe(code)
    await eventually(() => expect(harness.sink.closureOf(connection)).toBeDefined())
    expect(harness.sink.closureOf(connection)?.code).toBeOneOf(
      traits.violationCloseFrames ? [code] : [code, otherCode, 1006],
    )
    expect(harness.sink.textsOf(connection)).toEqual([])
    await harness.expectToServe()
  }

  describe('compression', () => {
    it('is not negotiated when it is off, nor when it is not offered', async () => {
      const off = await Harness.start(create)
      expect(await answerOf(await off.connectRaw(OFFER))).toBeUndefined()
      const on = await Harness.start(create, ON)
      expect(await answerOf(await on.connectRaw())).toBeUndefined()
    })

    it.each(OFFERS)('answers the offer "%s" with %j', async (offer, expected) => {
      const harness = await Harness.start(create, ON)
      const answer = await answerOf(await harness.connectRaw({ 'Sec-WebSocket-Extensions': offer }))
      expect(answer && partsOf(answer)).toEqual(expected)
    })

    it(`${traits.namesServerWindow ? 'names' : 'declines to name'} the window that a client names`, async () => {
      const harness = await Harness.start(create, ON)
      const offer = { 'Sec-WebSocket-Extensions': 'permessage-deflate; server_max_window_bits=15' }
      const answer = await answerOf(await harness.connectRaw(offer))
      const expected = [...ACCEPTED, 'server_max_window_bits=15'].sort()
      expect(answer && partsOf(answer)).toEqual(traits.namesServerWindow ? expected : undefined)
    })

    it('refuses a compressed message on a connection that did not negotiate it', async () => {
      const harness = await Harness.start(create, ON)
      const plain = await harness.connectRaw()
      plain.client.write(clientFrame(OPCODE.text, deflated('hello'), COMPRESSED))
      await expectRefusal(harness, plain, 1002)
    })

    it.each([0, 1, 125, 999, 1_000, 65_536, 200_000])('carries texts of %i bytes both ways', async (bytes) => {
      const harness = await echo()
      const { client } = await connectCompressing(harness)
      const text = 'abcdefghij€'.repeat(bytes).slice(0, bytes)
      client.send(text)
      await eventually(() => expect(client.messages).toEqual([text]))
    })

    it.each([0, 1, 999, 1_000, 200_000])('carries %i bytes that do not compress both ways', async (bytes) => {
      const harness = await echo()
      const { client } = await connectCompressing(harness)
      const data = randomBytes(bytes)
      client.send(data)
      await eventually(() => expect(client.messages).toHaveLength(1))
      expect(data.equals(client.messages[0] as Buffer)).toBe(true)
    })

    it('takes a compressed message in fragments, with a ping between them, and a plain one after it', async () => {
      const harness = await Harness.start(create, ON)
      const { client, connection } = await harness.connectRaw(OFFER)
      const payload = deflated('one message, in three fragments')
      client.write(clientFrame(OPCODE.text, payload.subarray(0, 5), { ...COMPRESSED, isFinal: false }))
      client.write(clientFrame(OPCODE.ping, 'ping'))
      client.write(clientFrame(OPCODE.continuation, payload.subarray(5, 9), { isFinal: false }))
      client.write(clientFrame(OPCODE.continuation, payload.subarray(9)))
      client.write(clientFrame(OPCODE.text, 'plain'))
      await eventually(() =>
        expect(harness.sink.textsOf(connection)).toEqual(['one message, in three fragments', 'plain']),
      )
      await eventually(() => expect(client.frames.map(({ opcode }) => opcode)).toEqual([OPCODE.pong]))
    })

    it('compresses messages of `thresholdBytes` and more, for those who negotiated it', async () => {
      const harness = await Harness.start(create, ON)
      const members = [await harness.connectRaw(OFFER), await harness.connectRaw()]
      const below = 'b'.repeat(THRESHOLD_BYTES - 1)
      const text = 'ä'.repeat(THRESHOLD_BYTES / 2)
      for (const { connection } of members) {
        harness.transport.join(connection, group(1))
        harness.transport.send(connection, below, false)
        harness.transport.send(connection, text, false)
      }
      harness.transport.multicast([group(1)], below, false)
      harness.transport.multicast([group(1)], Buffer.from(text), true)
      for (const { client } of members) await eventually(() => expect(client.frames).toHaveLength(4))
      const [compressing, plain] = members.map(({ client }) => client.frames)
      expect(compressing?.map(({ isDeflated }) => isDeflated)).toEqual([false, true, false, true])
      expect(plain?.map(({ isDeflated }) => isDeflated)).toEqual([false, false, false, false])
      const messages = compressing?.map(({ isDeflated, payload }) =>
        (isDeflated ? inflated(payload) : payload).toString(),
      )
      expect(messages).toEqual([below, text, below, text])
      expect(plain?.map(({ payload }) => payload.toString())).toEqual(messages)
      expect(compressing?.[1]?.payload.length).toBeLessThan(50)
      expect(compressing?.map(({ opcode }) => opcode)).toEqual([1, 1, 1, 2])
    })

    it('brings a multicast to members with and without it once each, in order', { timeout: 60_000 }, async () => {
      const harness = await Harness.start(create, { ...ON, maxOutboxBytes: 64 * 1024 * 1024 })
      const { transport } = harness
      const compressing = await Promise.all(Array.from({ length: 10 }, () => connectCompressing(harness)))
      const members = [...compressing, ...(await harness.connectMany(10))]
      for (const { connection } of members) transport.join(connection, group(1))
      for (const { connection } of members.slice(5, 15)) transport.join(connection, group(2))
      const except = members[7]?.connection as ConnectionId
      const expected: string[] = []
      for (let number = 0; number < 300; number++) {
        const text = `${number} ${'x'.repeat((number * 397) % 5_000)}${randomBytes(number).toString('base64')}`
        expected.push(text)
        const groups = number % 3 === 0 ? [group(1), group(2)] : [group(1)]
        transport.multicast(groups, text, false, number % 5 === 0 ? except : undefined)
        // Some of them in turns of their own.
        if (number % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      for (const member of members) await harness.settle(member)
      for (const { client, connection } of members) {
        const own = connection === except ? expected.filter((_, number) => number % 5 !== 0) : expected
        expect(client.messages).toEqual(own)
      }
    })

    it('closes with 1009 when a message is larger than `maxMessageBytes` once it is decompressed', async () => {
      const harness = await Harness.start(create, { ...ON, maxMessageBytes: 1_000 })
      const { client, connection } = await connectCompressing(harness)
      client.send('a'.repeat(1_000))
      client.send('b'.repeat(1_001))
      await expect(client.closed).resolves.toMatchObject({ code: 1009 })
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1009))
      expect(harness.sink.textsOf(connection)).toEqual(['a'.repeat(1_000)])
    })

    it('refuses bombs with 1009, within bounded memory', { timeout: 60_000 }, async () => {
      const harness = await Harness.start(create, ON)
      const frame = clientFrame(OPCODE.binary, bomb(100), COMPRESSED)
      const halves = [frame.subarray(0, 50_000), frame.subarray(50_000)]
      const attackers = await Promise.all(Array.from({ length: 20 }, () => harness.connectRaw(OFFER)))
      const beforeBytes = process.memoryUsage.rss()
      let peakBytes = beforeBytes
      for (const half of halves) {
        for (const { client } of attackers) client.write(half)
        await new Promise((resolve) => setImmediate(resolve))
        peakBytes = Math.max(peakBytes, process.memoryUsage.rss())
      }
      for (const attacker of attackers) {
        await expectRefusal(harness, attacker, 1009)
        peakBytes = Math.max(peakBytes, process.memoryUsage.rss())
      }
      expect(peakBytes - beforeBytes).toBeLessThan(MAX_GROWTH_BYTES)
    })

    it(`ends a connection that sends something else than DEFLATE, with ${traits.invalidDeflateCode}`, async () => {
      const harness = await Harness.start(create, ON)
      const attacker = await harness.connectRaw(OFFER)
      attacker.client.write(clientFrame(OPCODE.text, Buffer.alloc(100, 0xff), COMPRESSED))
      await expectRefusal(harness, attacker, traits.invalidDeflateCode, 1009)
    })

    it('ends a connection whose text is not UTF-8 once it is decompressed, with 1007', async () => {
      const harness = await Harness.start(create, ON)
      const attacker = await harness.connectRaw(OFFER)
      attacker.client.write(clientFrame(OPCODE.text, deflated(Buffer.from([0x61, 0xc3, 0x28])), COMPRESSED))
      await expectRefusal(harness, attacker, 1007)
    })
  })
}

const EXTENSIONS = 'sec-websocket-extensions'

/** Name and parameters of an extension, in alphabetical order. */
function partsOf(extension: string): string[] {
  return extension
    .split(';')
    .map((part) => part.trim())
    .sort()
}
