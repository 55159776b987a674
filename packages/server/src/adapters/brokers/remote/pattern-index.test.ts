import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contains } from 'webmq-client/protocol'
import { PatternIndex } from './pattern-index.js'

const patterns = fc
  .array(fc.constantFrom('a', 'b', '', '*', '#'), { minLength: 1, maxLength: 6 })
  .map((words) => words.join('.'))
  .filter((pattern) => pattern !== '')

function indexOf(...all: string[]): PatternIndex {
  const index = new PatternIndex()
  for (const pattern of all) index.add(pattern)
  return index
}

describe('PatternIndex', () => {
  it('finds nothing that is not so', () => {
    fc.assert(
      fc.property(fc.array(patterns), patterns, (all, pattern) => {
        const index = indexOf(...all)
        const outer = index.containing(pattern)
        if (outer !== undefined) {
          expect(all).toContain(outer)
          expect(contains(outer, pattern)).toBe(true)
        }
        for (const inner of index.within(pattern)) {
          expect(all).toContain(inner)
          expect(contains(pattern, inner)).toBe(true)
        }
      }),
    )
  })

  it('finds the same from both sides', () => {
    fc.assert(
      fc.property(fc.uniqueArray(patterns), patterns, (all, pattern) => {
        const index = indexOf(...all)
        for (const inner of index.within(pattern)) expect(indexOf(pattern).containing(inner)).toBe(pattern)
        const outer = index.containing(pattern)
        if (outer !== undefined) expect(indexOf(pattern).within(outer)).toEqual([pattern])
        expect(index.containing(pattern) !== undefined).toBe(
          all.some((other) => other !== pattern && indexOf(pattern).within(other).length > 0),
        )
      }),
    )
  })

  it.each([
    ['#', 'a'],
    ['#', '*.#'],
    ['*.#', '*.*.#'],
    ['a.*', 'a.b'],
    ['a.*.#', 'a.*.b'],
    ['a.*.#', 'a.b.*.#'],
    ['*.#.b', 'a.*.#.b'],
    ['a.#', 'a'],
    ['#.b.#', 'a.b.c'],
  ])('%s contains %s', (outer, inner) => {
    expect(indexOf(outer).containing(inner)).toBe(outer)
    expect(indexOf(inner).within(outer)).toEqual([inner])
  })

  it.each([
    ['a.*', 'a.#'],
    ['a.*', '*.b'],
    ['a', 'a.b'],
    ['a.b', 'a'],
    ['*.#.b', '*.#'],
  ])('%s does not contain %s', (outer, inner) => {
    expect(indexOf(outer).containing(inner)).toBeUndefined()
    expect(indexOf(inner).within(outer)).toEqual([])
  })

  it('keeps what was added and not deleted, and nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), patterns)), (steps) => {
        const index = new PatternIndex()
        const expected = new Set<string>()
        for (const [isAdded, pattern] of steps) {
          if (isAdded) {
            index.add(pattern)
            expected.add(pattern)
          } else {
            index.delete(pattern)
            expected.delete(pattern)
          }
          expect(index.has(pattern)).toBe(isAdded)
        }
        expect(index.size).toBe(expected.size)
        expect(new Set(index.within('#'))).toEqual(new Set([...expected].filter((pattern) => pattern !== '#')))
      }),
    )
  })
})
