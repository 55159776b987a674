import { describe, expect, it } from 'vitest'
import { createTestClient, createTestServer } from '../../dev/testing/index.js'
import { msgpack } from './index.js'

const bytesOf = (...bytes: number[]) => Uint8Array.from(bytes)
const roundTrip = (payload: unknown) => msgpack.decode(new Uint8Array(msgpack.encode(payload)))

describe('msgpack', () => {
  it('writes what the MessagePack specification says, small objects with one byte of header', () => {
    expect([...msgpack.encode({ a: [1, -1, null, true, 'ä', 300] })]).toEqual([
      0x81, 0xa1, 0x61, 0x96, 1, 0xff, 0xc0, 0xc3, 0xa2, 0xc3, 0xa4, 0xcd, 1, 44,
    ])
    // Records, which only msgpackr can read, would be extensions (0xd4 0x72).
    const rows = Array.from({ length: 3 }, (_, n) => ({ id: n, name: 'x' }))
    expect(msgpack.encode(rows)[0]).toBe(0x93)
    expect([...msgpack.encode(rows)].filter((byte) => byte === 0x82)).toHaveLength(3)
  })

  it.each([
    null,
    0.1,
    -(2 ** 40),
    'ä🙂'.repeat(100),
    { nested: [{ deep: {} }] },
    new Date(1_500_000_000_123),
    new Uint8Array([0, 255]),
  ])('round-trips %j', (payload) => {
    expect(roundTrip(payload)).toEqual(payload)
  })

  it('reads integers of other languages as numbers where they are exact', () => {
    expect(msgpack.decode(bytesOf(0xcf, 0, 0, 0, 1, 0, 0, 0, 0))).toBe(2 ** 32)
    expect(msgpack.decode(bytesOf(0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))).toBe(2n ** 64n - 1n)
    expect(roundTrip(5n)).toBe(5)
  })

  it('writes a Map as an object, a Set as an array, undefined as null', () => {
    expect(roundTrip([new Map([['a', 1]]), new Set([1, 2]), undefined])).toEqual([{ a: 1 }, [1, 2], null])
  })

  it.each([
    ['Float32Array', [new Float32Array(2)]],
    ['Float64Array', { deep: [{ array: new Float64Array(2) }] }],
    ['DataView', new Map([['a', new DataView(new ArrayBuffer(8))]])],
    ['Int16Array', new Set([new Int16Array(1)])],
    ['BigInt64Array', { toJSON: () => [new BigInt64Array(1)] }],
  ] as readonly [string, unknown][])(
    'refuses a %s wherever it stands, instead of writing foreign memory',
    (name, view) => {
      expect(() => msgpack.encode(view)).toThrow(`${name}: pass its bytes as a Uint8Array`)
    },
  )

  it.each([
    ['nothing', bytesOf()],
    ['a part', bytesOf(0x93, 1)],
    ['more than one value', bytesOf(1, 1)],
  ])('throws for %s', (_what, bytes) => {
    expect(() => msgpack.decode(bytes)).toThrow()
  })

  it('returns bytes that later payloads do not change', () => {
    const first = msgpack.encode('first')
    const copy = [...first]
    for (let n = 0; n < 10_000; n++) msgpack.encode({ n, text: 'x'.repeat(n % 300) })
    expect([...first]).toEqual(copy)
  })
})

describe('a client with a codec', () => {
  it('sends binary frames, and delivers the decoded payloads', async () => {
    const server = createTestServer()
    const { client: ann } = createTestClient({ server, codec: msgpack })
    const { client: bob } = createTestClient({ server, codec: msgpack })
    const payloads: unknown[] = []
    const payload = { text: 'hi', at: new Date(0), bytes: bytesOf(1, 2) }
    await bob.listen('chat.*', (received) => payloads.push(received)).ready
    await ann.publish('chat.1', payload)
    server.publish('chat.2', msgpack.encode('from the server'))
    await Promise.all([ann.close(), bob.close()])
    expect(payloads).toEqual([payload, 'from the server'])
    expect(server.received.find(({ verb }) => verb === 'publish')).toMatchObject({
      payload: new Uint8Array(msgpack.encode(payload)),
    })
  })

  it('reads text frames as JSON; a client without a codec gets the bytes', async () => {
    const server = createTestServer()
    const { client: packed } = createTestClient({ server, codec: msgpack })
    const { client: plain } = createTestClient({ server })
    const received: unknown[] = []
    await packed.listen('a', (payload) => received.push(['packed', payload])).ready
    await plain.listen('a', (payload) => received.push(['plain', payload])).ready
    await plain.publish('a', { json: true })
    await packed.publish('a', [1])
    await Promise.all([packed.close(), plain.close()])
    expect(received).toEqual([
      ['packed', { json: true }],
      ['plain', { json: true }],
      ['packed', [1]],
      ['plain', bytesOf(0x91, 1)],
    ])
  })

  it('reports a payload that its codec cannot read, and handles the next one', async () => {
    const { client, server } = createTestClient({ codec: msgpack })
    const errors: unknown[] = []
    client.on('error', ({ error, key }) => errors.push([error, key]))
    const received: unknown[] = []
    await client.listen('#', (payload) => received.push(payload)).ready
    server.publish('raw', bytesOf(0x93, 1))
    // Nothing to decode: the key has no value any more.
    server.publish('empty', bytesOf())
    server.publish('good', msgpack.encode('good'))
    await expect(client.publish('a', Symbol('no'))).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    await client.close()
    expect(received).toEqual([undefined, 'good'])
    expect(errors).toEqual([[expect.objectContaining({ code: 'E_PAYLOAD_INVALID' }), 'raw']])
  })

  it('takes any codec, and keeps its bytes until the publish has settled', async () => {
    const reversed = {
      encode: (payload: unknown) => new TextEncoder().encode([...JSON.stringify(payload)].reverse().join('')),
      decode: (bytes: Uint8Array) => JSON.parse([...new TextDecoder().decode(bytes)].reverse().join('')),
    }
    const { client, server } = createTestClient({ codec: reversed })
    const received: unknown[] = []
    await client.listen('a', (payload) => received.push(payload)).ready
    await client.publish('a', { text: 'hi' })
    server.publish('a', new TextEncoder().encode('}1:"n"{'))
    await client.close()
    expect(received).toEqual([{ text: 'hi' }, { n: 1 }])
  })
})
