import fc from 'fast-check'
import { expect, it } from 'vitest'
import { pieceBytes, pieceOf } from './pieces.js'

it('counts a text as many bytes as it has when it is written again, whoever wrote it', () => {
  const escaped = (text: string) =>
    text.replaceAll(/./gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string(),
    fc.constantFrom('', 'Zürich 😀', 'a"b\\c\u0000\u2028'),
  )
  const payloads = fc.oneof(
    texts.map((text) => JSON.stringify(text)),
    texts.map((text) => ` ${JSON.stringify(text)}\n`),
    fc.string({ maxLength: 5 }).map((text) => `"${escaped(text)}"`),
  )
  const bytes = fc.oneof(
    payloads.map((text) => Buffer.from(text)),
    // What is no UTF-8 is read as other bytes.
    fc.uint8Array({ maxLength: 5 }).map((rest) => Buffer.concat([Buffer.from('"'), rest, Buffer.from('"')])),
  )
  fc.assert(
    fc.property(bytes, (payload) => {
      const piece = pieceOf(payload, false)
      if (piece !== undefined) expect(pieceBytes(piece, payload)).toBe(pieceBytes(piece))
    }),
    { numRuns: 2_000 },
  )
})
