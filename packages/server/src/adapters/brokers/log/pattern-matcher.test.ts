import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PatternMatcher } from './pattern-matcher.js'

/** AMQP's definition, word by word, exponential. */
function naiveMatches([head, ...pattern]: readonly string[], key: readonly string[]): boolean {
  if (head === undefined) return key.length === 0
  if (head === '#')
    return naiveMatches(pattern, key) || (key.length > 0 && naiveMatches([head, ...pattern], key.slice(1)))
  const [first, ...rest] = key
  return first !== undefined && (head === '*' || head === first) && naiveMatches(pattern, rest)
}

const word = fc.constantFrom('a', 'b', 'ab', '')
const patternWord = fc.constantFrom('a', 'b', 'ab', '', '*', '#', '#')

/** The answer, and the steps it took. */
function match(pattern: string, key: string): [isMatch: boolean, steps: number] {
  const budget = { left: 0 }
  return [new PatternMatcher(pattern).matches(key, budget), 0 - budget.left]
}

it('agrees with the definition, in at most words of the pattern x words of the key steps', () => {
  fc.assert(
    fc.property(
      fc.array(patternWord, { minLength: 1, maxLength: 7 }),
      fc.array(word, { minLength: 1, maxLength: 7 }),
      (pattern, key) => {
        fc.pre(key.join('.') !== '' && pattern.join('.') !== '')
        const [isMatch, steps] = match(pattern.join('.'), key.join('.'))
        expect(isMatch).toBe(naiveMatches(pattern, key))
        expect(steps).toBeLessThanOrEqual((pattern.length + 1) * (key.length + 1))
      },
    ),
    { numRuns: 20_000 },
  )
})

it('stays within that bound for patterns and keys that are made to compare long', () => {
  const isHash = fc.constantFrom('#', 'a', 'a', 'a', '*')
  fc.assert(
    fc.property(
      fc.array(isHash, { minLength: 20, maxLength: 120 }),
      fc.integer({ min: 20, max: 128 }),
      fc.constantFrom('b.#', 'b', 'a.#', '#'),
      (words, keyWords, end) => {
        const pattern = [...words, end].join('.')
        const key = Array.from({ length: keyWords }, () => 'a').join('.')
        const [, steps] = match(pattern, key)
        expect(steps).toBeLessThanOrEqual((pattern.split('.').length + 1) * (keyWords + 1))
      },
    ),
    { numRuns: 2_000 },
  )
})

it('takes no step for a key that begins or ends otherwise', () => {
  expect(match('#.a.a.b', 'a.a.a.a.a.a')).toEqual([false, 0])
  expect(match('b.#.a.#', 'a.a.a.a.a.a')).toEqual([false, 0])
  expect(match('a.*', 'ab.a')).toEqual([false, 0])
  expect(match('a.b', 'a.b')).toEqual([true, 0])
})
