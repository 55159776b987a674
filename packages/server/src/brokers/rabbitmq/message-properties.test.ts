import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { idEndOf, idPrefixOf, SourceReader } from './message-properties.js'

const NODE = '0123456789abcdef'

/** Reads an id that stands among other bytes. */
function read(reader: SourceReader, id: string, key: string) {
  const bytes = Buffer.from(`123${id}456`)
  return reader.read(bytes, 3, bytes.length - 3, key)
}

describe('the id of a message', () => {
  it('says who published it, whatever the numbers and the key', () => {
    const reader = new SourceReader()
    const node = fc.constantFrom(NODE, 'fedcba9876543210', '0000000000000000')
    const sequence = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
    const origin = fc.option(fc.integer({ min: 0, max: 4_294_967_295 }), { nil: undefined })
    fc.assert(
      fc.property(node, sequence, origin, fc.string({ minLength: 1, maxLength: 80 }), (node, sequence, origin, key) => {
        const id = idPrefixOf(node) + idEndOf(sequence, key, origin)
        expect(read(reader, id, key)).toEqual({ node, sequence, origin })
        expect(read(reader, id, `${key}x`)).toBeUndefined()
      }),
    )
  })

  it('is read of more nodes than are remembered, in turn', () => {
    const reader = new SourceReader()
    const nodes = Array.from({ length: 40 }, (_, index) => index.toString(16).padStart(16, '0'))
    for (const node of [...nodes, ...nodes.toReversed(), ...nodes]) {
      expect(read(reader, idPrefixOf(node) + idEndOf(1, 'a', undefined), 'a')?.node).toBe(node)
    }
  })

  it('is nothing else that is written', () => {
    const valid = idPrefixOf(NODE) + idEndOf(12, 'a', 3)
    const reader = new SourceReader()
    const place = fc.nat(valid.length - 1)
    const char = fc.constantFrom('-', '0', 'x', ' ', 'F', '\u{1f600}', '')
    fc.assert(
      fc.property(place, char, (at, other) => {
        const changed = valid.slice(0, at) + other + valid.slice(at + 1)
        const source = read(reader, changed, 'a')
        // Other digits are another sequence or node; everything else is nobody.
        if (source !== undefined) expect(changed).toMatch(/^webmq-[\da-f]{16}-\d+-97(-\d+)?$/)
        expect(read(reader, valid, 'a')).toEqual({ node: NODE, sequence: 12, origin: 3 })
      }),
    )
  })
})
