import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeEnvelope, encodeEnvelope } from './envelope.js'
import type { LinkMessage } from './link.js'

const encoder = new TextEncoder()
const NODE = '0123456789abcdef'

const nodes = fc.stringMatching(/^[0-9a-f]{16}$/)
const keys = fc.stringMatching(/^[!-"$-)+-~é€]{1,80}$/u)
const messages: fc.Arbitrary<LinkMessage> = fc.record({
  sequence: fc.integer({ min: 1, max: 2 ** 48 - 1 }),
  key: keys,
  payload: fc.uint8Array({ maxLength: 300 }),
  isBinary: fc.boolean(),
  publisher: fc.option(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { nil: undefined }),
  isBundle: fc.boolean(),
  messageId: fc.option(keys, { nil: undefined }),
  isLogged: fc.constant(false),
})

function message(payload: Uint8Array, more: Partial<LinkMessage> = {}): LinkMessage {
  return {
    sequence: 1,
    key: 'a',
    payload,
    isBinary: false,
    publisher: undefined,
    messageId: undefined,
    isLogged: false,
    ...more,
  }
}

function expectedOf(node: string, { key, payload, isBinary, sequence, publisher, isBundle, messageId }: LinkMessage) {
  return { key, payload: Buffer.from(payload), isBinary, source: { node, sequence, publisher, isBundle }, messageId }
}

describe('envelope', () => {
  it('carries every message of every node', () => {
    fc.assert(
      fc.property(nodes, messages, (node, message) => {
        expect(decodeEnvelope(message.key, encodeEnvelope(node, message))).toEqual(expectedOf(node, message))
      }),
    )
  })

  it('carries the key where the channel does not tell it', () => {
    fc.assert(
      fc.property(nodes, messages, (node, message) => {
        const bytes = encodeEnvelope(node, message, message.key)
        expect(decodeEnvelope(undefined, bytes)).toEqual(expectedOf(node, message))
      }),
    )
  })

  it('is read out of the middle of a larger buffer, and lends a view of it', () => {
    const envelope = encodeEnvelope(NODE, message(encoder.encode('"payload"')))
    const received = Buffer.concat([Buffer.from('before'), envelope, Buffer.from('after')])
    const delivery = decodeEnvelope('a', received.subarray(6, 6 + envelope.length))
    expect(delivery?.payload.toString()).toBe('"payload"')
    expect(delivery?.payload.buffer).toBe(received.buffer)
  })

  it('has the bytes that other versions must keep', () => {
    const small = message(Uint8Array.of(0xff), { sequence: 0x0102_0304_0506, isBinary: true, publisher: 0xfffefdfc })
    expect(encodeEnvelope(NODE, small).toString('hex')).toBe('00430123456789abcdef010203040506fffefdfcff')
    expect(encodeEnvelope(NODE, message(new Uint8Array()), 'é').toString('hex')).toBe(
      '00440123456789abcdef00000000000102c3a9',
    )
  })

  it('takes texts of up to 255 bytes, and refuses longer ones', () => {
    const longest = 'é'.repeat(127)
    const bytes = encodeEnvelope(NODE, message(new Uint8Array(), { messageId: `${longest}x` }), `${longest}y`)
    expect(decodeEnvelope(undefined, bytes)).toMatchObject({ key: `${longest}y`, messageId: `${longest}x` })
    const tooLong = message(new Uint8Array(), { messageId: 'é'.repeat(128) })
    expect(() => encodeEnvelope(NODE, tooLong)).toThrow(expect.objectContaining({ code: 'E_MESSAGE_INVALID' }))
  })

  it('keeps apart nodes that differ in one bit', () => {
    const one = message(new Uint8Array())
    for (const node of [NODE, '8123456789abcdef', '0123456789abcdee', '0123456689abceef', NODE]) {
      expect(decodeEnvelope('a', encodeEnvelope(node, one))?.source?.node).toBe(node)
    }
  })

  it.each([
    ['{"a":1}', false],
    ['"text"', false],
    [' 1 ', false],
    ['text', true],
    ['{"a":', true],
    ['', true],
    [Uint8Array.of(0x22, 0xff, 0x22), true],
  ])('takes %j of somebody else as it is, binary: %j', (bare, isBinary) => {
    const bytes = typeof bare === 'string' ? encoder.encode(bare) : bare
    expect(decodeEnvelope('a', bytes)).toEqual({ key: 'a', payload: Buffer.from(bytes), isBinary, source: undefined })
  })

  it('refuses what is cut short, whatever its length', () => {
    const bytes = encodeEnvelope(NODE, message(new Uint8Array(), { publisher: 7 }), 'some.key')
    for (let length = 1; length < bytes.length; length++) {
      expect(decodeEnvelope(undefined, bytes.subarray(0, length))).toBeUndefined()
    }
    expect(decodeEnvelope(undefined, bytes)).toBeDefined()
  })

  it('refuses another version', () => {
    const bytes = encodeEnvelope(NODE, message(new Uint8Array()))
    bytes[1] = 0x20
    expect(decodeEnvelope('a', bytes)).toBeUndefined()
  })

  it('refuses a message without a key when the channel tells none', () => {
    expect(decodeEnvelope(undefined, encodeEnvelope(NODE, message(new Uint8Array())))).toBeUndefined()
    expect(decodeEnvelope(undefined, encoder.encode('{}'))).toBeUndefined()
  })

  it('never throws on any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        decodeEnvelope('a', bytes)
        decodeEnvelope(undefined, Uint8Array.of(0, 0x1f, ...bytes))
      }),
    )
  })
})
