import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matches } from 'webmq-client/protocol'
import type { GroupId } from '../ports/transport.js'
import { Router } from './router.js'
import { formatOf, isSse, mayDrop, OVERFLOWS, overflowOf, variantOf } from './variant.js'

/** Few words, empty ones included, so that random patterns and keys meet often. */
const word = fc.constantFrom('a', 'b', 'c', '')
const key = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => words.join('.'))
const pattern = fc
  .array(fc.oneof(word, fc.constantFrom('*', '#')), { minLength: 1, maxLength: 6 })
  .map((words) => words.join('.'))

const variant = fc.constantFrom(
  ...(['websocket', 'sse'] as const).flatMap((format) => OVERFLOWS.map((overflow) => variantOf(format, overflow))),
)

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

  it('keeps a route per variant of a pattern, whatever was added and removed before', () => {
    const step = fc.record({ pattern: fc.constantFrom('a', 'a.*', '#'), variant, isAdded: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const router = new Router({ maxCachedKeys: 8, maxCachedGroups: 16 })
        const counts = new Map<string, number>()
        for (const { pattern, variant, isAdded } of steps) {
          const name = `${pattern} ${variant}`
          const count = counts.get(name) ?? 0
          if (isAdded) {
            const route = router.add(pattern, variant)
            expect(router.routeOf(route.group)).toBe(route)
            expect([isSse(route.group), mayDrop(route.group)]).toEqual([
              formatOf(variant) === 'sse',
              overflowOf(variant) !== 'disconnect',
            ])
            counts.set(name, count + 1)
          } else {
            if (count > 1) counts.set(name, count - 1)
            else counts.delete(name)
            const isRouted = [...counts.keys()].some((other) => other.startsWith(`${pattern} `))
            expect(router.remove(pattern, variant)).toBe(count === 1 && !isRouted)
          }
          for (const key of ['a', 'a.b']) {
            const routes = router.match(key).map((group) => router.routeOf(group))
            const expected = [...counts.keys()].filter((name) => matches(name.slice(0, name.indexOf(' ')), key))
            expect(routes.map((route) => `${route?.pattern} ${route?.variant}`).toSorted()).toEqual(expected.toSorted())
          }
        }
        const routes = [...router.routes()]
        expect(routes).toHaveLength(counts.size)
        expect(router.patternCount).toBe(new Set(routes.map(({ pattern }) => pattern)).size)
        expect(router.routeCountOf('sse')).toBe(routes.filter(({ group }) => isSse(group)).length)
      }),
      { numRuns: 200 },
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

  it('agrees with a comparison pattern by pattern, in at most words of the key x words of the patterns steps', () => {
    const word = fc.constantFrom('a', 'a', 'b', '')
    const patternWord = fc.constantFrom('a', 'a', 'b', '*', '#', '#')
    fc.assert(
      fc.property(
        fc.array(fc.array(patternWord, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 12 }),
        fc.array(word, { minLength: 1, maxLength: 40 }),
        (patternWords, keyWords) => {
          const key = keyWords.join('.')
          fc.pre(key !== '')
          const router = new Router()
          const patterns = new Set(patternWords.map((words) => words.join('.')))
          const groups = new Map([...patterns].map((pattern) => [router.add(pattern).group, pattern]))
          const found = router.match(key).map((group) => groups.get(group))
          const expected = [...patterns].filter((pattern) => matches(pattern, key))
          expect(found.toSorted()).toEqual(expected.toSorted())
          const nodeCount = 1 + patternWords.reduce((sum, { length }) => sum + length, 0)
          expect(router.stepCount).toBeLessThanOrEqual(keyWords.length * nodeCount)
        },
      ),
      { numRuns: 3_000 },
    )
  })

  it('takes a bounded number of steps for patterns that are made to backtrack', () => {
    const router = new Router()
    // 128 patterns of 127 words that all match a part of the key again and again.
    let wordCount = 1
    for (let index = 0; index < 128; index++) {
      const choices = index.toString(2).padStart(7, '0')
      const pattern = [...choices].map((bit) => (bit === '0' ? '#.a' : '#.*.a')).join('.') + '.#.a'.repeat(50)
      router.add(pattern)
      wordCount += pattern.split('.').length
    }
    // A walk that backtracks would not end in the life of the machine.
    expect(router.match(`${'a.'.repeat(127)}b`)).toEqual([])
    expect(router.stepCount).toBeLessThanOrEqual(128 * wordCount)
    const { stepCount } = router
    router.match(`${'a.'.repeat(127)}b`)
    expect(router.stepCount).toBe(stepCount)
  })

  it('takes less than 1,000 steps for each of 1,280 patterns within the limits of clients', () => {
    const router = new Router()
    for (let index = 0; index < 1_280; index++) {
      const words = [...index.toString(2).padStart(11, '0')].map((bit) => (bit === '1' ? '*' : 'a'))
      router.add(['#.a', ...words.slice(0, 5), 'a.#.a', ...words.slice(5), 'a.#.a.a.a.a.a.a.a.a.a.x'].join('.'))
    }
    expect(router.match(`${'a.'.repeat(31)}b`)).toEqual([])
    expect(router.stepCount).toBeLessThan(1_280 * 1_000)
  })
})
