import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contains } from './containment.js'
import { isKey, isPattern } from './keys.js'
import { matches } from './matching.js'

/** Stands for every word that occurs in no pattern: patterns match all such words alike. */
const UNUSED = 'z'
const WORDS = ['a', 'b', '', UNUSED]

function pattern(maxWords: number): fc.Arbitrary<string> {
  return fc
    .array(fc.constantFrom('a', 'b', '', '*', '#', '#'), { minLength: 1, maxLength: maxWords })
    .map((words) => words.join('.'))
    .filter(isPattern)
}

function allKeys(maxWords: number): readonly string[] {
  let longest = WORDS
  const keys = [...longest]
  for (let count = 2; count <= maxWords; count++) {
    longest = longest.flatMap((key) => WORDS.map((word) => `${key}.${word}`))
    keys.push(...longest)
  }
  return keys.filter(isKey)
}

/** Possible positions in the pattern after some words; `#` may be skipped without a word. */
function closure(positions: readonly number[], words: readonly string[]): readonly number[] {
  const all = new Set(positions)
  for (const position of all) if (words[position] === '#') all.add(position + 1)
  return [...all].sort((a, b) => a - b)
}

function step(positions: readonly number[], words: readonly string[], word: string): readonly number[] {
  const next = positions.flatMap((position) => {
    if (words[position] === '#') return [position]
    return words[position] === '*' || words[position] === word ? [position + 1] : []
  })
  return closure(next, words)
}

/**
 * A shortest key that `inner` matches and `outer` does not, by subset construction: exact for every length, and
 * exponential.
 */
function counterexample(outerPattern: string, innerPattern: string): string | undefined {
  const outer = outerPattern.split('.')
  const inner = innerPattern.split('.')
  const seen = new Set<string>()
  const queue = [{ key: [] as readonly string[], outerAt: closure([0], outer), innerAt: closure([0], inner) }]
  for (const { key, outerAt, innerAt } of queue) {
    const isCounterexample = innerAt.includes(inner.length) && !outerAt.includes(outer.length)
    if (isCounterexample && isKey(key.join('.'))) return key.join('.')
    if (innerAt.length === 0) continue
    for (const word of WORDS) {
      const next = { key: [...key, word], outerAt: step(outerAt, outer, word), innerAt: step(innerAt, inner, word) }
      // The empty word alone is not a key, but a key may lead to the same state.
      const name = `${next.outerAt}|${next.innerAt}|${isKey(next.key.join('.'))}`
      if (seen.has(name)) continue
      seen.add(name)
      queue.push(next)
    }
  }
  return undefined
}

describe('contains', () => {
  it('is true exactly when no key of up to six words matches inner and not outer', () => {
    const keys = allKeys(6)
    fc.assert(
      fc.property(pattern(3), pattern(3), (outer, inner) => {
        const found = keys.find((key) => matches(inner, key) && !matches(outer, key))
        expect(contains(outer, inner), `counterexample: ${found}`).toBe(found === undefined)
      }),
      { numRuns: 1_500 },
    )
  })

  it('is true exactly when the automata of longer patterns find no counterexample of any length', () => {
    fc.assert(
      fc.property(pattern(8), pattern(8), (outer, inner) => {
        const found = counterexample(outer, inner)
        expect(contains(outer, inner), `counterexample: ${found}`).toBe(found === undefined)
        if (found !== undefined) expect([matches(inner, found), matches(outer, found)]).toEqual([true, false])
      }),
      { numRuns: 3_000 },
    )
  })

  it('agrees with the automata on patterns that differ in few words, where both answers are common', () => {
    const change = fc.tuple(fc.nat(), fc.constantFrom('*', '#', 'a', '#.*', '*.*', '#.a', 'a.#'))
    fc.assert(
      fc.property(pattern(7), fc.array(change, { minLength: 1, maxLength: 3 }), (inner, changes) => {
        const words = inner.split('.')
        for (const [at, replacement] of changes) words[at % words.length] = replacement
        const outer = words.join('.')
        const found = counterexample(outer, inner)
        expect(contains(outer, inner), `counterexample: ${found}`).toBe(found === undefined)
      }),
      { numRuns: 3_000 },
    )
  })

  it('contains itself, is contained in #, and passes containment on', () => {
    fc.assert(
      fc.property(pattern(5), pattern(5), pattern(5), (a, b, c) => {
        expect([contains(a, a), contains('#', a)]).toEqual([true, true])
        if (contains(a, b) && contains(b, c)) expect(contains(a, c)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  it('contains a key as a pattern exactly when it matches it', () => {
    fc.assert(
      fc.property(pattern(6), fc.constantFrom(...allKeys(4)), (outer, key) => {
        expect(contains(outer, key)).toBe(matches(outer, key))
      }),
      { numRuns: 2_000 },
    )
  })

  it('answers for patterns whose automata have 2^60 states', () => {
    const tail = Array.from({ length: 60 }, () => '*').join('.')
    const looser = Array.from({ length: 59 }, () => '*').join('.')
    expect(contains(`#.a.${tail}`, `#.a.b.${looser}`)).toBe(true)
    expect(contains(`#.a.${tail}`, `#.a.#.${looser}`)).toBe(false)
  })
})
