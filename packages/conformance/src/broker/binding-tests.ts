import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { matches } from 'webmq-client/protocol'
import type { Broker } from 'webmq-server/ports'
import { eventually } from '../transport/eventually.js'
import { type BrokerHarness, type DeliveryRecorder, deliveredUpTo, type RunningNode, text } from './harness.js'

const PATTERN_COUNT = 1_000

/** Keys with a special meaning in some service: separators, globs, subjects, templates, and empty words. */
const ODD_KEYS = [
  '.',
  'a.',
  '.a',
  'a..b',
  '>',
  'a.>',
  '$SYS.a',
  '$JS.API',
  '[a-z]',
  '?',
  'a\\.b',
  '^',
  '{a}.b',
  'a:b/c',
  '%2E',
  '%',
  '_',
  '_.a',
  'ü.é.字',
  '\u{1f600}.a',
  'x'.repeat(255),
  Array.from({ length: 128 }, () => 'x').join('.'),
]

/**
 * Which messages come, and that no others do. Order is promised only within a key, and a cluster may have several
 * servers, so messages compared in order share their first word.
 */
export function bindingTests(harness: () => BrokerHarness): void {
  describe('bindings', () => {
    let node: RunningNode
    let broker: Broker
    let sink: DeliveryRecorder

    beforeEach(async () => {
      node = await harness().startNode()
      ;({ broker, sink } = node)
    })

    it('delivers what its bindings match and nothing else', async () => {
      for (const pattern of ['exact.key', 'one.*', 'more.#', '*..empty', 'end.of']) await node.bind(pattern)
      const wanted = ['exact.key', 'one.word', 'one.', 'more', 'more.a.b', '..empty', 'end.of', 'one.end']
      for (const key of ['exact', 'exact.key.longer', 'one', 'one.two.three', 'amore', 'x.empty']) {
        await broker.publish(text(key, `unwanted ${key}`))
      }
      for (const key of wanted) await broker.publish(text(key, key))
      await eventually(() => expect(sink.deliveries.length).toBeGreaterThanOrEqual(wanted.length))
      expect(sink.texts.sort()).toEqual([...wanted].sort())
      expect(sink.deliveries.map(({ key }) => key).sort()).toEqual([...wanted].sort())
    })

    it('has the same patterns as every other broker, # in the middle included', async () => {
      const word = fc.constantFrom('a', 'b', 'c', '')
      const patternWord = fc.oneof(word, fc.constantFrom('*', '#', '#'))
      const joined = (words: fc.Arbitrary<string>, maxLength: number) =>
        fc
          .array(words, { minLength: 1, maxLength })
          .map((parts) => parts.join('.'))
          .filter((path) => path !== '')
      const sampled = fc.record({
        patterns: fc.uniqueArray(joined(patternWord, 4), { minLength: 1, maxLength: 6 }),
        keys: fc.array(joined(word, 5), { minLength: 10, maxLength: 40 }),
      })
      const rounds = [
        { patterns: ['a.#.b'], keys: ['a.b', 'a.x.b', 'a.x.y.b', 'a', 'a.b.c', 'x.a.b', 'a..b'] },
        { patterns: ['#.b'], keys: ['b', 'a.b', 'a.a.b', 'b.a', ''] },
        {
          patterns: ['a.#.b.#.c.#', 'a.#.d.#.c.#', '#.b.#.*.#'],
          keys: ['a.b.c', 'a.x.b.c.x', 'a.d.x.c', 'a.c', 'a', 'b', 'b.x', 'd.c'],
        },
        { patterns: ['a.#.*'], keys: ['a', 'a.b', 'a.b.c', 'b.a'] },
        ...fc.sample(sampled, 20),
      ]
      for (const [round, { patterns, keys }] of rounds.entries()) {
        await Promise.all(patterns.map((pattern) => node.bind(`r${round}.${pattern}`)))
        await node.bind(`r${round}.end`)
        const from = sink.deliveries.length
        const published = keys.map((key) => `r${round}.${key}`)
        await Promise.all(published.map((key) => broker.publish(text(key, key))))
        await broker.publish(text(`r${round}.end`, `end ${round}`))
        await deliveredUpTo(sink, `end ${round}`)
        const wanted = published.filter((key) => patterns.some((pattern) => matches(`r${round}.${pattern}`, key)))
        expect(sink.texts.slice(from, -1), patterns.join(' ')).toEqual(wanted)
        for (const pattern of [...patterns, 'end']) await node.unbind(`r${round}.${pattern}`)
      }
    })

    it('delivers a message once, however many bindings match it', async () => {
      for (const pattern of ['a.b', 'a.*', '#', 'a.#', '*.b', '#.b', 'a.#.b']) await node.bind(pattern)
      await broker.publish(text('a.b', 'one'))
      await broker.publish(text('a.b', 'two'))
      expect(await deliveredUpTo(sink, 'two')).toEqual(['one', 'two'])
      for (const pattern of ['#', 'a.#', 'a.b']) await node.unbind(pattern)
      await broker.publish(text('a.b', 'three'))
      await broker.publish(text('b.b', 'four'))
      await eventually(() => expect(sink.texts).toContain('four'))
      await broker.publish(text('a.b', 'five'))
      await eventually(() => expect(sink.texts).toContain('five'))
      expect(sink.texts.sort()).toEqual(['five', 'four', 'one', 'three', 'two'])
    })

    it('loses nothing of a pattern while a broader one comes and goes', async () => {
      await node.bind('a.b')
      const expected: string[] = []
      for (let round = 0; round < 10; round++) {
        const change = round % 2 === 0 ? node.bind('a.#') : node.unbind('a.#')
        for (let index = 0; index < 20; index++) {
          expected.push(`${round} ${index}`)
          void broker.publish(text('a.b', `${round} ${index}`))
        }
        await change
      }
      expect(await deliveredUpTo(sink, expected.at(-1) ?? '')).toEqual(expected)
    })

    it('ends the interest with unbind, and leaves other patterns alone', async () => {
      await node.bind('a.end')
      await node.bind('a.*')
      await node.bind('a.b')
      await node.unbind('a.*')
      await broker.publish(text('a.b', 'still bound'))
      await deliveredUpTo(sink, 'still bound')
      await node.unbind('a.b')
      await broker.publish(text('a.b', 'no longer bound'))
      await broker.publish(text('a.end', 'end'))
      expect(await deliveredUpTo(sink, 'end')).toEqual(['still bound', 'end'])
    })

    it('is right whichever way binds and unbinds of a pattern follow each other without waiting', async () => {
      await node.bind('x.end')
      const calls: (void | Promise<void>)[] = []
      for (let round = 0; round < 20; round++)
        calls.push(node.bind('x.a'), node.bind('x.b'), node.unbind('x.b'), node.unbind('x.a'))
      calls.push(node.bind('x.a'))
      await Promise.all(calls)
      await broker.publish(text('x.b', 'unbound'))
      await broker.publish(text('x.a', 'bound'))
      await broker.publish(text('x.end', 'end'))
      expect(await deliveredUpTo(sink, 'end')).toEqual(['bound', 'end'])
    })

    it('takes every key there can be, word for word', async () => {
      await node.bind('#')
      for (const key of ODD_KEYS) await broker.publish(text(key, key))
      await eventually(() => expect(sink.deliveries).toHaveLength(ODD_KEYS.length))
      expect(sink.deliveries.map(({ key }) => key).sort()).toEqual([...ODD_KEYS].sort())
      for (const { key, text } of sink.deliveries) expect(text).toBe(key)
    })

    it('takes every key there can be as a pattern too', async () => {
      for (const key of ODD_KEYS) await node.bind(key)
      for (const key of ODD_KEYS) await broker.publish(text(key, key))
      await eventually(() => expect(sink.deliveries).toHaveLength(ODD_KEYS.length))
      expect(sink.deliveries.map(({ key }) => key).sort()).toEqual([...ODD_KEYS].sort())
      for (const { key, text } of sink.deliveries) expect(text).toBe(key)
    })

    it(`binds and unbinds ${PATTERN_COUNT} patterns at speed`, async () => {
      const patterns = Array.from({ length: PATTERN_COUNT }, (_, index) =>
        index % 4 === 0 ? `many.${index}.*` : `many.${index}`,
      )
      const keys = patterns.map((pattern) => pattern.replace('*', 'x'))
      await node.bind('end')
      await Promise.all(patterns.map((pattern) => node.bind(pattern)))
      await Promise.all(keys.map((key) => broker.publish(text(key, key))))
      await eventually(() => expect(sink.deliveries.length).toBe(PATTERN_COUNT))
      expect(sink.deliveries.map(({ key }) => key)).toEqual(keys)
      for (const pattern of patterns) void node.unbind(pattern)
      // Calls take effect in order: once this one has, so have those before it.
      await node.bind('after')
      const { receivedCount } = broker.stats()
      await Promise.all(keys.map((key) => broker.publish(text(key, key))))
      await broker.publish(text('end', 'end'))
      await deliveredUpTo(sink, 'end')
      expect(sink.deliveries).toHaveLength(PATTERN_COUNT + 1)
      // The log comes complete, whatever is bound.
      const logCount = broker.capabilities.history ? PATTERN_COUNT : 0
      expect(broker.stats().receivedCount - receivedCount).toBeLessThanOrEqual(logCount + 1)
    })
  })
}
