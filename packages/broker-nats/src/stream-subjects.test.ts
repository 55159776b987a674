import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { disjointSubjects } from './subjects.js'

const word = fc.constantFrom('a', 'b', '*')
const subject = fc
  .tuple(fc.array(word, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([words, isOpen]) => [...words, ...(isOpen ? ['>'] : [])].join('.'))
const literal = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 5 }).map((words) => words.join('.'))

function isMatch(subject: string, literal: string): boolean {
  const pattern = subject
    .split('.')
    .map((word) => (word === '*' ? '[^.]+' : word === '>' ? '.+' : word))
    .join('\\.')
  return new RegExp(`^${pattern}$`).test(literal)
}

describe('disjointSubjects', () => {
  it('matches all that was matched, and nothing twice', () => {
    fc.assert(
      fc.property(fc.array(subject, { maxLength: 6 }), fc.array(literal, { maxLength: 20 }), (subjects, literals) => {
        const disjoint = disjointSubjects(subjects)
        for (const each of literals) {
          const wasMatched = subjects.some((subject) => isMatch(subject, each))
          const count = disjoint.filter((subject) => isMatch(subject, each)).length
          expect(count).toBeLessThanOrEqual(1)
          if (wasMatched) expect(count).toBe(1)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('leaves what does not overlap, and drops what another one contains', () => {
    expect(disjointSubjects(['n.chat', 'n.chat.>', 'n.$log'])).toEqual(['n.$log', 'n.chat', 'n.chat.>'])
    expect(disjointSubjects(['n.chat.a', 'n.chat.>', 'n.$log', 'n.>'])).toEqual(['n.>'])
  })

  it('joins what overlaps', () => {
    expect(disjointSubjects(['n.a.*', 'n.*.b', 'n.c.*'])).toEqual(['n.*.*'])
    expect(disjointSubjects(['n.a.>', 'n.*.b'])).toEqual(['n.*.>'])
  })
})
