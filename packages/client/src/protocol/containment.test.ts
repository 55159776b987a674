import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contains } from './containment.js'
import { isPattern } from './keys.js'
import { matches } from './matching.js'

/** All sequences of at most `maxWords` words, but the one that is the empty string, which is no key. */
function allKeys(words: readonly string[], maxWords: number): readonly string[] {
  let longest: readonly (readonly string[])[] = [[]]
  const keys: string[] = []
  for (let count = 1; count <= maxWords; count++) {
    longest = longest.flatMap((key) => words.map((word) => [...key, word]))
    keys.push(...longest.map((key) => key.join('.')))
  }
  return keys.filter((key) => key !== '')
}

/** `z` stands for any word that occurs in no pattern: one such word is as good as all of them. */
const KEYS = allKeys(['a', 'b', '', 'z'], 6)

/**
 * With at most three words each, keys of six words are long enough: a counterexample need not give a `#` of `inner` more
 * unused words than `outer` has words.
 */
const shortPattern = fc
  .array(fc.constantFrom('a', 'b', '', '*', '#'), { minLength: 1, maxLength: 3 })
  .map((words) => words.join('.'))
  .filter(isPattern)

describe('contains', () => {
  it('is true exactly when no key matches inner and not outer', () => {
    fc.assert(
      fc.property(shortPattern, shortPattern, (outer, inner) => {
        const counterexample = KEYS.find((key) => matches(inner, key) && !matches(outer, key))
        expect(contains(outer, inner), `counterexample: ${counterexample}`).toBe(counterexample === undefined)
      }),
      { numRuns: 3_000 },
    )
  })
})
