import { describe, expect, it } from 'vitest'
import { matches } from 'webmq-client/protocol'
import { seededRandom } from '../../../../client/test/seeded-random.js'
import { trieWords } from '../../kernel/ports/trie-words.js'
import { overlap } from './overlap.js'

const overlapOf = (one: string, other: string) => overlap(trieWords(one), trieWords(other))

describe('overlap', () => {
  it('says whether there is a key that both patterns match', () => {
    const random = seededRandom(7)
    const wordOf = (words: readonly string[]) => words[Math.floor(random() * words.length)] as string
    const textOf = (words: readonly string[]) =>
      Array.from({ length: 1 + Math.floor(random() * 4) }, () => wordOf(words)).join('.')
    const keys = keysOf(['a', 'b'], 8)
    let yes = 0
    for (let count = 0; count < 1_500; count++) {
      const [one, other] = [textOf(['a', 'b', '*', '#']), textOf(['a', 'b', '*', '#'])]
      const isBoth = keys.some((key) => matches(one, key) && matches(other, key))
      expect([one, other, overlapOf(one, other)]).toEqual([one, other, isBoth])
      if (isBoth) yes++
    }
    expect(yes).toBeGreaterThan(300)
    expect(yes).toBeLessThan(1_300)
  })
})

function keysOf(words: readonly string[], maxLength: number): string[] {
  let last = [...words]
  const keys = [...words]
  for (let length = 2; length <= maxLength; length++) {
    last = last.flatMap((key) => words.map((word) => `${key}.${word}`))
    keys.push(...last)
  }
  return keys
}
