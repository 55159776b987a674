import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PayloadCopier } from './payload-copier.js'

const sizes = fc.oneof(fc.nat({ max: 200 }), fc.integer({ min: 4_000, max: 5_000 }), fc.constantFrom(0, 65_536, 65_537))

describe('PayloadCopier', () => {
  it('makes copies that nothing changes afterwards, whatever their sizes', () => {
    fc.assert(
      fc.property(fc.array(sizes, { maxLength: 60 }), (lengths) => {
        const copier = new PayloadCopier()
        const copies = lengths.map((length, index) => {
          const payload = new Uint8Array(length).fill(index)
          const copy = copier.copy(payload)
          payload.fill(0xff)
          return copy
        })
        for (const [index, copy] of copies.entries()) {
          expect(copy.length).toBe(lengths[index])
          expect(copy.every((byte) => byte === index)).toBe(true)
        }
      }),
    )
  })
})
