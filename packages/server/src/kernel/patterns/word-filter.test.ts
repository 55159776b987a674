import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WordFilter } from './word-filter.js'

describe('WordFilter', () => {
  it('never denies a word that is there, whatever was added and deleted', () => {
    const step = fc.record({ word: fc.nat(300).map(String), isAdded: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 2_000 }), (steps) => {
        const counts = new Map<string, number>()
        let filter = WordFilter.empty()
        for (const { word, isAdded } of steps) {
          const count = counts.get(word) ?? 0
          if (isAdded) filter.add(word)
          else if (count > 0) filter.delete(word)
          counts.set(word, isAdded ? count + 1 : Math.max(0, count - 1))
          if (filter.isFull) filter = filter.grown([...counts].flatMap(([word, count]) => Array(count).fill(word)))
        }
        for (const [word, count] of counts) if (count > 0) expect(filter.mayHave(word)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  it('denies most words that are not there, and all when it is empty again', () => {
    let filter = WordFilter.empty()
    const words = Array.from({ length: 20_000 }, (_, index) => `word-${index}`)
    for (const [index, word] of words.entries()) {
      filter.add(word)
      if (filter.isFull) filter = filter.grown(words.slice(0, index + 1))
    }
    const strangers = Array.from({ length: 20_000 }, (_, index) => `stranger-${index}`)
    expect(strangers.filter((word) => filter.mayHave(word)).length).toBeLessThan(20_000 * 0.3)
    for (const word of words) filter.delete(word)
    expect(words.some((word) => filter.mayHave(word))).toBe(false)
  })

  it('keeps a word that was added more often than it can count', () => {
    const filter = WordFilter.empty()
    for (let count = 0; count < 300; count++) filter.add('orders')
    for (let count = 0; count < 299; count++) filter.delete('orders')
    expect(filter.mayHave('orders')).toBe(true)
  })
})
