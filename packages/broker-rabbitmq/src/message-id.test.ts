import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeMessageId, encodeMessageId, keyHash } from './message-properties.js'

const NODE = '0123456789abcdef'

interface Told {
  readonly sequence: number
  readonly key: string
  readonly publisher?: number | undefined
  readonly messageId?: string | undefined
}

function idOf(node: string, { sequence, key, publisher, messageId }: Told): string {
  const payload = new Uint8Array(0)
  return encodeMessageId(node, { sequence, key, payload, isBinary: false, publisher, messageId, isLogged: false })
}

describe('the id of a message', () => {
  it('says who published it, whatever the numbers and the key', () => {
    const node = fc.constantFrom(NODE, 'fedcba9876543210', '0000000000000000')
    const sequence = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
    const publisher = fc.option(fc.integer({ min: 0, max: 4_294_967_295 }), { nil: undefined })
    const messageId = fc.option(fc.stringMatching(/^[\w-]{22}$/), { nil: undefined })
    const key = fc.string({ minLength: 1, maxLength: 80 })
    fc.assert(
      fc.property(node, sequence, publisher, messageId, key, (node, sequence, publisher, messageId, key) => {
        const id = idOf(node, { sequence, key, publisher, messageId })
        expect(decodeMessageId(id, key)).toEqual({ source: { node, sequence, publisher }, ownId: messageId })
        // A hash of 16 bits: one in 30,000 keys has that of the longer key, too.
        if (keyHash(`${key}x`) !== keyHash(key)) expect(decodeMessageId(id, `${key}x`)).toBeUndefined()
      }),
    )
  })

  it('has at most 79 characters', () => {
    const most = { sequence: Number.MAX_SAFE_INTEGER, key: '編'.repeat(85), publisher: 4_294_967_295 }
    expect(idOf(NODE, { ...most, messageId: 'x'.repeat(22) }).length).toBeLessThanOrEqual(79)
  })

  it('is nothing else that is written', () => {
    const valid = idOf(NODE, { sequence: 12, key: 'a', publisher: 3 })
    const index = fc.nat(valid.length - 1)
    const char = fc.constantFrom('-', '0', 'x', ' ', 'F', '\u{1f600}', '')
    fc.assert(
      fc.property(index, char, (at, other) => {
        const changed = valid.slice(0, at) + other + valid.slice(at + 1)
        // Other digits are another sequence or node; everything else is nobody.
        if (decodeMessageId(changed, 'a') !== undefined) expect(changed).toMatch(/^webmq-[\da-f]{16}-\d+-97(-\d+)?$/)
      }),
    )
    for (const id of [undefined, 7, '', 'webmq-']) expect(decodeMessageId(id, 'a')).toBeUndefined()
  })
})
