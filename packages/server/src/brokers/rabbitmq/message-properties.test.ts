import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { idEndOf, idPrefixOf, SourceReader } from './message-properties.js'

const NODE = '0123456789abcdef'

interface Told {
  readonly sequence: number
  readonly key: string
  readonly origin?: number | undefined
  readonly messageId?: string | undefined
}

/** The id of a message. */
function idOf(node: string, { sequence, key, origin, messageId }: Told): string {
  const payload = new Uint8Array(0)
  return idPrefixOf(node) + idEndOf({ sequence, key, payload, isBinary: false, origin, messageId, isLogged: false })
}

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
    const messageId = fc.option(fc.stringMatching(/^[\w-]{1,64}$/), { nil: undefined })
    const key = fc.string({ minLength: 1, maxLength: 80 })
    fc.assert(
      fc.property(node, sequence, origin, messageId, key, (node, sequence, origin, messageId, key) => {
        const id = idOf(node, { sequence, key, origin, messageId })
        expect(read(reader, id, key)).toEqual({ node, sequence, origin })
        expect(reader.ownId(Buffer.from(`123${id}456`), 3 + id.length)).toBe(messageId)
        expect(read(reader, id, `${key}x`)).toBeUndefined()
      }),
    )
  })

  it('has room for an id of the publisher, however long: what is too long has a hash', () => {
    const most = { sequence: Number.MAX_SAFE_INTEGER, key: 'a', origin: 4_294_967_295 }
    const ids = ['x'.repeat(128), 'x'.repeat(129), 'ü'.repeat(64), 'a b', ''].map((messageId) =>
      idOf(NODE, { ...most, messageId }),
    )
    for (const id of ids) {
      expect(Buffer.byteLength(id)).toBeLessThanOrEqual(255)
      expect(read(new SourceReader(), id, 'a')).toMatchObject({ node: NODE, origin: 4_294_967_295 })
    }
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('is read of more nodes than are remembered, in turn', () => {
    const reader = new SourceReader()
    const nodes = Array.from({ length: 40 }, (_, index) => index.toString(16).padStart(16, '0'))
    for (const node of [...nodes, ...nodes.toReversed(), ...nodes]) {
      expect(read(reader, idOf(node, { sequence: 1, key: 'a' }), 'a')?.node).toBe(node)
    }
  })

  it('is nothing else that is written', () => {
    const valid = idOf(NODE, { sequence: 12, key: 'a', origin: 3 })
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
