import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeAttributes, encodeAttributes, MAX_ATTRIBUTES_BYTES, type MessageAttributes } from './attributes.js'

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
const attributes: fc.Arbitrary<MessageAttributes> = fc.record(
  {
    userId: text,
    timeMs: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    id: text,
    isEphemeral: fc.constant(true as const),
    isInterim: fc.constant(true as const),
    stream: text,
    traceparent: text,
    copyOf: fc.maxSafeNat(),
    copyFingerprint: fc.nat(2 ** 30 - 1),
    owner: text,
    checksum: fc.nat(2 ** 32 - 1),
  },
  { requiredKeys: [] },
)

describe('attributes of a message', () => {
  it('come out as they went in', () => {
    fc.assert(
      fc.property(attributes, (given) => {
        expect(decodeAttributes(encodeAttributes(given))).toEqual(given)
      }),
    )
  })

  it('take few bytes', () => {
    expect(encodeAttributes({ isEphemeral: true })).toHaveLength(1)
    expect(encodeAttributes({ userId: 'ada', timeMs: Date.now(), id: 'x'.repeat(22) })).toHaveLength(1 + 5 + 8 + 24)
  })

  it('refuses a text that is too long, and texts that are too long together', () => {
    expect(encodeAttributes({ userId: '中'.repeat(85) })).toHaveLength(258)
    expect(() => encodeAttributes({ userId: `${'中'.repeat(85)}x` })).toThrow('256 bytes')
  })

  it('reads any bytes without an error, and only what a node may have written', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        decodeAttributes(bytes)
      }),
    )
    const encoded = encodeAttributes({ userId: 'ada', id: 'shown' })
    for (let length = 0; length < encoded.length; length++) {
      // Cut between two entries, they are fewer.
      const isWhole = length === 1 || length === 1 + 5
      expect(decodeAttributes(encoded.subarray(0, length)) !== undefined).toBe(isWhole)
    }
    expect(decodeAttributes(new Uint8Array(MAX_ATTRIBUTES_BYTES + 1).fill(0x10))).toBeUndefined()
    expect(decodeAttributes(Uint8Array.of(0x20))).toBeUndefined()
  })

  it('skips what a later version may add', () => {
    const encoded = encodeAttributes({ userId: 'ada' })
    const later = Buffer.concat([Uint8Array.of(0x1c, 200, 2, 1, 2), encoded.subarray(1)])
    expect(decodeAttributes(later)).toEqual({ userId: 'ada' })
  })
})
