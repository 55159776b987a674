import { expect, it } from 'vitest'
import { assertKeyWords, assertPatternWords, isSearch } from './word-limits.js'

const LIMITS = { maxWords: 3, maxHashes: 1 }

it('count the words of keys and patterns, and the # of patterns', () => {
  for (const key of ['a', 'a.b.c', '..']) assertKeyWords(key, LIMITS)
  for (const pattern of ['#', 'a.#.c', '*.*.*']) assertPatternWords(pattern, LIMITS)
  const refused = (code: string, message: string) =>
    expect.objectContaining({ code, message: expect.stringContaining(message) as unknown })
  expect(() => assertKeyWords('a.b.c.d', LIMITS)).toThrow(refused('E_KEY_INVALID', '4 words, at most 3 (maxWords)'))
  expect(() => assertKeyWords('...', LIMITS)).toThrow(refused('E_KEY_INVALID', '4 words'))
  expect(() => assertPatternWords('a.*.c.#', LIMITS)).toThrow(refused('E_PATTERN_INVALID', '4 words'))
  expect(() => assertPatternWords('#.a.#', LIMITS)).toThrow(refused('E_PATTERN_INVALID', '2 #, at most 1 (maxHashes)'))
})

it('know a pattern that has to be searched in a key', () => {
  expect(['#.a', 'a.#.b', '#.a.#', '#.a.*'].map(isSearch)).toEqual([true, true, true, true])
  expect(['a', 'a.*', 'a.#', '#', '#.#', '#.*', 'a.#.*'].map(isSearch)).toEqual(Array.from({ length: 7 }, () => false))
})
