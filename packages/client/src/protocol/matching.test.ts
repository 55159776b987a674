import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matches } from './matching.js'

/** AMQP's definition, word by word, exponential. */
function naiveMatches([head, ...pattern]: readonly string[], key: readonly string[]): boolean {
  if (head === undefined) return key.length === 0
  if (head === '#')
    return naiveMatches(pattern, key) || (key.length > 0 && naiveMatches([head, ...pattern], key.slice(1)))
  const [first, ...rest] = key
  return first !== undefined && (head === '*' || head === first) && naiveMatches(pattern, rest)
}

const word = fc.constantFrom('a', 'b', 'ab', '')
const patternWord = fc.constantFrom('a', 'b', 'ab', '', '*', '#')

describe('matches', () => {
  it('agrees with the naive matcher', () => {
    fc.assert(
      fc.property(
        fc.array(patternWord, { minLength: 1, maxLength: 7 }),
        fc.array(word, { minLength: 1, maxLength: 7 }),
        (pattern, key) => {
          expect(matches(pattern.join('.'), key.join('.'))).toBe(naiveMatches(pattern, key))
        },
      ),
      { numRuns: 20_000 },
    )
  })

  it('matches every key with the pattern that was made from it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(word, fc.constantFrom('word', 'star', 'hash', 'hash-before')), {
          minLength: 1,
          maxLength: 20,
        }),
        (choices) => {
          const key = choices.map(([text]) => text).join('.')
          const pattern = choices.flatMap(([text, choice]) => {
            if (choice === 'star') return ['*']
            if (choice === 'hash') return ['#']
            return choice === 'hash-before' ? ['#', text] : [text]
          })
          expect(matches(pattern.join('.'), key)).toBe(true)
        },
      ),
      { numRuns: 5_000 },
    )
  })

  it('takes a bounded number of steps for a pattern full of #', () => {
    // A matcher that tries every split of the key over the #s needs 10^30 steps and more for this.
    const pattern = `${'#.'.repeat(100)}b`
    const key = 'a.'.repeat(127)
    expect(matches(pattern, key)).toBe(false)
    expect(matches(pattern, `${key}b`)).toBe(true)
  })
})
