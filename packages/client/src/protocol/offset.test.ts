import fc from 'fast-check'
import { expect, it } from 'vitest'
import { digitCountOf, formatOffset, parseOffset, putOffset } from './offset.js'

const EDGES = [0, 1, 9, 10, 35, 36, 1_295, 1_296, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 36 ** 10, Number.MAX_SAFE_INTEGER]

function written(offset: number): string {
  const bytes = new Uint8Array(20).fill(0x21)
  const end = putOffset(bytes, 3, offset)
  expect(end - 3).toBe(digitCountOf(offset))
  return new TextDecoder().decode(bytes)
}

it.each(EDGES)('writes %d as base 36, and reads it again', (offset) => {
  const text = offset.toString(36)
  expect(written(offset)).toBe(`!!!${text}`.padEnd(20, '!'))
  expect(formatOffset(offset)).toBe(text)
  expect(parseOffset(text)).toBe(offset)
})

it('writes any offset as JavaScript does', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (offset) => {
      expect(written(offset)).toBe(`!!!${offset.toString(36)}`.padEnd(20, '!'))
    }),
    { numRuns: 1_000 },
  )
})

it.each(['', '-', 'A', '01', '1.5', '-1', '2gosa7pa2gw', 'zzzzzzzzzzzz', '1 '])('reads no offset in %j', (text) => {
  expect(parseOffset(text)).toBeUndefined()
})
