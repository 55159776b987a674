import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matches } from 'webmq-client/protocol'
import type { GroupId } from '../ports/transport.js'
import { Router } from './router.js'

/** Few words, empty ones included, so that random patterns and keys meet often. */
const word = fc.constantFrom('a', 'b', 'c', '')
const key = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => words.join('.'))
const pattern = fc
  .array(fc.oneof(word, fc.constantFrom('*', '#')), { minLength: 1, maxLength: 6 })
  .map((words) => words.join('.'))

const sorted = (groups: readonly GroupId[]) => [...groups].sort((a, b) => a - b)

describe('Router', () => {
  it('finds exactly the patterns that match, each once, whatever was added and removed before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ pattern, isAdded: fc.boolean(), key }), { maxLength: 60 }),
        fc.array(key, { minLength: 1, maxLength: 20 }),
        (steps, keys) => {
          const router = new Router({ maxCachedKeys: 8, maxCachedGroups: 16 })
          const references = new Map<string, { group: GroupId; count: number }>()
          const expectMatch = (key: string) => {
            const expected = [...references].filter(([pattern]) => matches(pattern, key)).map(([, { group }]) => group)
            expect(sorted(router.match(key))).toEqual(sorted(expected))
          }
          for (const { pattern, isAdded, key } of steps) {
            const known = references.get(pattern)
            if (isAdded) {
              const { group } = router.add(pattern)
              expect(group).toBe(known?.group ?? group)
              references.set(pattern, { group, count: (known?.count ?? 0) + 1 })
            } else {
              expect(router.remove(pattern)).toBe(known?.count === 1)
              if (known?.count === 1) references.delete(pattern)
              else if (known !== undefined) known.count--
            }
            expectMatch(key)
          }
          for (const key of keys) expectMatch(key)
          expect(router.patternCount).toBe(references.size)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('gives patterns that mean the same their own groups', () => {
    const router = new Router()
    const groups = ['#.*', '*.#', '*.#.#'].map((pattern) => router.add(pattern).group)
    expect(new Set(groups).size).toBe(3)
    expect(sorted(router.match('a.b'))).toEqual(sorted(groups))
    router.remove('*.#')
    expect(router.match('a')).toHaveLength(2)
  })

  it('uses the number of a group again once nobody refers to it', () => {
    const router = new Router()
    const { group } = router.add('a.*')
    router.add('a.*')
    router.remove('a.*')
    expect(router.add('b').group).not.toBe(group)
    router.remove('a.*')
    expect(router.has('a.*')).toBe(false)
    expect(router.add('c').group).toBe(group)
  })

  it('leaves a pattern alone that it does not know', () => {
    const router = new Router()
    expect(router.remove('nobody.listens')).toBe(false)
    expect(router.match('nobody.listens')).toEqual([])
  })

  it('answers from its cache until a pattern that matches comes or goes', () => {
    const router = new Router()
    router.add('a.*')
    const first = router.match('a.b')
    router.add('x.y')
    expect(router.match('a.b')).toBe(first)
    router.add('a.b')
    expect(router.match('a.b')).toHaveLength(2)
    router.add('#')
    expect(router.match('a.b')).toHaveLength(3)
    router.remove('a.*')
    expect(router.match('a.b')).toHaveLength(2)
  })

  it('takes a bounded number of steps for patterns that are made to backtrack', () => {
    const router = new Router()
    // 128 patterns of 127 words that all match a part of the key again and again: the worst one connection can do.
    for (let index = 0; index < 128; index++) {
      const choices = index.toString(2).padStart(7, '0')
      router.add([...choices].map((bit) => (bit === '0' ? '#.a' : '#.*.a')).join('.') + '.#.a'.repeat(50))
    }
    const startedMs = performance.now()
    expect(router.match(`${'a.'.repeat(127)}b`)).toEqual([])
    // A walk that backtracks would not end in the life of the machine; this one takes about 20 ms.
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  })
})
