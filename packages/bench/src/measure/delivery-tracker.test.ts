import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DeliveryTracker } from './delivery-tracker.js'

const record = (sequences: readonly number[]) => {
  const tracker = new DeliveryTracker(1, 1)
  return sequences.map((sequence) => tracker.record(0, 0, sequence))
}

describe('the delivery tracker', () => {
  it('takes messages in order, with holes, as delivered', () => {
    expect(record([0, 1, 2, 5, 6])).toEqual(['delivered', 'delivered', 'delivered', 'delivered', 'delivered'])
  })

  it('finds a second copy, also of a late message', () => {
    expect(record([0, 0])).toEqual(['delivered', 'duplicate'])
    expect(record([1, 0, 0, 1])).toEqual(['delivered', 'reordered', 'duplicate', 'duplicate'])
  })

  it('finds a message that comes after its successor', () => {
    expect(record([0, 2, 1, 3])).toEqual(['delivered', 'delivered', 'reordered', 'delivered'])
  })

  it('keeps publishers and keys apart', () => {
    const tracker = new DeliveryTracker(2, 3)
    for (let slot = 0; slot < 2; slot++) {
      for (let publisher = 0; publisher < 3; publisher++) expect(tracker.record(slot, publisher, 0)).toBe('delivered')
    }
    expect(tracker.record(1, 2, 0)).toBe('duplicate')
  })

  it('agrees with a set that remembers everything', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 60 }), (sequences) => {
        const seen = new Set<number>()
        const expected = sequences.map((sequence) => {
          const isDuplicate = seen.has(sequence)
          const isLate = sequence < Math.max(-1, ...seen)
          seen.add(sequence)
          return isDuplicate ? 'duplicate' : isLate ? 'reordered' : 'delivered'
        })
        expect(record(sequences)).toEqual(expected)
      }),
    )
  })
})
