import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Confirms } from './confirms.js'

describe('delivery tags', () => {
  it('stand for sequences, wherever these began and whatever was left out of them', () => {
    const increasing = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(increasing, fc.array(fc.nat(60), { maxLength: 20 }), (steps, settledTags) => {
        const confirms = new Confirms()
        let sequence = 0
        const sequences = steps.map((step) => {
          sequence += step
          return sequence
        })
        for (const published of sequences) confirms.published(published)
        let settledTag = 0
        for (const tag of settledTags) {
          const upTo = sequences.slice(settledTag, tag)
          expect([...confirms.sequencesUpTo(tag)]).toEqual(upTo)
          confirms.settle(tag)
          settledTag = Math.max(settledTag, tag)
          const open = sequences.slice(settledTag)
          expect(open.map((_, index) => confirms.sequenceOf(settledTag + 1 + index))).toEqual(open)
          expect(confirms.sequenceOf(sequences.length + 1)).toBeUndefined()
        }
      }),
    )
  })
})
