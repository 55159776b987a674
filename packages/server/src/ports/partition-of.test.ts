import { describe, expect, it } from 'vitest'
import {
  firstWordsOf,
  mayOverlap,
  namespaceOf,
  partitionOfKey,
  partitionOfWords,
  sharedWordsOf,
} from './partition-of.js'

describe('the partition of a key', () => {
  // Other programs compute it too: these values never change. docs/brokers.md has some of them.
  it.each([
    ['', 16, 5],
    ['chat', 16, 11],
    ['orders', 16, 12],
    ['room.42', 16, 14],
    ['prix€', 16, 2],
    ['😀', 7, 3],
  ])('of the words %j is, of %i, number %i', (words, count, expected) => {
    expect(partitionOfWords(words, count)).toBe(expected)
  })

  it('is that of its first words', () => {
    for (const key of ['chat', 'chat.a', 'chat.b.c']) expect(partitionOfKey(key, { count: 16, words: 1 })).toBe(11)
    expect(partitionOfKey('room.42.x.y', { count: 16, words: 2 })).toBe(partitionOfWords('room.42', 16))
    expect(firstWordsOf('a..b', 2)).toBe('a.')
  })

  it('spreads keys evenly', () => {
    const counts = new Array<number>(16).fill(0)
    for (let index = 0; index < 16_000; index++) {
      const partition = partitionOfKey(`room${index}.message`, { count: 16, words: 1 })
      counts[partition] = (counts[partition] ?? 0) + 1
    }
    expect(Math.min(...counts)).toBeGreaterThan(800)
    expect(Math.max(...counts)).toBeLessThan(1_200)
  })

  it('has a namespace of its own', () => {
    expect(namespaceOf('webmq', 3, 16)).toBe('webmq-p3of16')
  })
})

it.each([
  ['a.b.c', 1, 'a'],
  ['a.#', 1, 'a'],
  ['a.*.c', 1, 'a'],
  ['a', 2, 'a'],
  ['a.b.#', 2, 'a.b'],
  ['a.#', 2, undefined],
  ['a.*.b', 2, undefined],
  ['#', 1, undefined],
  ['*.a', 1, undefined],
  ['#.a', 1, undefined],
])('the keys of %s share, of %i words, %j', (pattern, words, expected) => {
  expect(sharedWordsOf(pattern, words)).toBe(expected)
})

it.each([
  ['a', 'a', true],
  ['a', 'b', false],
  ['a', 'a.b', false],
  ['a', 'a.#', true],
  ['*', 'b', true],
  ['*.x', 'b', false],
  ['#', 'b.c', true],
  ['a.*', 'a.#.z', true],
  ['#', '$webmq.x', false],
])('%s and %s may match the same key: %s', (one, other, expected) => {
  expect(mayOverlap(one, other)).toBe(expected)
  expect(mayOverlap(other, one)).toBe(expected)
})
