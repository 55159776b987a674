import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isKey } from 'webmq-client/protocol'
import { KeyReader, KeyWriter } from './key-codec.js'

describe('keys as bytes', () => {
  it('come back as they were, in whatever order they are asked for', () => {
    const word = fc.oneof(
      fc.constantFrom('a', 'b', 'tick', '', 'ü', '字', '\u{1f600}', '\ufeff'),
      fc.string({ maxLength: 6 }),
    )
    const key = fc
      .array(word, { minLength: 1, maxLength: 4 })
      .map((words) => words.join('.'))
      .filter(isKey)
    const [writer, reader] = [new KeyWriter(), new KeyReader()]
    fc.assert(
      fc.property(fc.array(key, { maxLength: 50 }), (keys) => {
        for (const key of keys) {
          const bytes = Buffer.concat([Buffer.from('xx'), writer.bytesOf(key), Buffer.from('yy')])
          expect(reader.keyOf(bytes, 2, bytes.length - 2)).toBe(key)
          bytes.fill(0)
        }
      }),
    )
  })

  it('stay right beyond the number that is remembered', () => {
    const [writer, reader] = [new KeyWriter(), new KeyReader()]
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < 10_000; index++) {
        const bytes = writer.bytesOf(`key.${index}`)
        expect(reader.keyOf(bytes, 0, bytes.length)).toBe(`key.${index}`)
      }
    }
  })

  it.each([
    ['nothing', []],
    ['a space', [0x61, 0x20]],
    ['a wildcard', [0x2a]],
    ['what is not UTF-8', [0x61, 0xff]],
    ['half a character', [0xc3]],
  ])('are none for %s, each time', (_what, bytes) => {
    const reader = new KeyReader()
    for (let round = 0; round < 2; round++) {
      expect(reader.keyOf(Uint8Array.from(bytes), 0, bytes.length)).toBeUndefined()
    }
  })
})
