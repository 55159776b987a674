import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matches, WebMQError } from 'webmq-client/protocol'
import { bindingOf } from './binding-of.js'
import { BoundedBindings } from './queue-bindings.js'

const MAX_COUNT = 4

/** A broker that answers a turn later, in order, and may forbid everything. */
function binder({ isWideForbidden = false } = {}) {
  const bound = new Set<string>()
  let last: Promise<unknown> = Promise.resolve()
  const call = (act: () => void): Promise<void> => {
    const done = last.then(act)
    last = done.catch(() => undefined)
    return done
  }
  return {
    bound,
    settled: async () => {
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    },
    bind: (pattern: string) =>
      call(() => {
        if (pattern === '#' && isWideForbidden) throw new WebMQError('E_BROKER_REFUSED')
        bound.add(pattern)
      }),
    unbind: (pattern: string) => call(() => void bound.delete(pattern)),
  }
}

describe('bindings that are bounded', () => {
  it('always hold what is wanted, exactly while it is little, and never more than the limit and #', async () => {
    const pattern = fc.constantFrom('#', 'a', 'b', 'c.*', 'd', 'e', 'f.#', 'f.#.a.#.b.#', 'f.#.#.#', 'g')
    const step = fc.record({ pattern, isAwaited: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const broker = binder()
        const bindings = new BoundedBindings(broker, MAX_COUNT)
        const wanted = new Set<string>()
        for (const { pattern, isAwaited } of steps) {
          const isBind = !wanted.has(pattern)
          const done = isBind ? bindings.bind(pattern) : bindings.unbind(pattern)
          if (isBind) wanted.add(pattern)
          else wanted.delete(pattern)
          if (!isAwaited) continue
          await done
          if (isBind) expect(broker.bound.has(bindingOf(pattern)) || broker.bound.has('#')).toBe(true)
        }
        await broker.settled()
        const needed = new Set([...wanted].map(bindingOf))
        for (const binding of needed) expect(broker.bound.has(binding) || broker.bound.has('#')).toBe(true)
        for (const binding of broker.bound) expect(needed.has(binding) || binding === '#').toBe(true)
        if (needed.size * 2 <= MAX_COUNT) expect(broker.bound).toEqual(needed)
        if (needed.size > MAX_COUNT) expect(broker.bound.has('#')).toBe(true)
        expect(broker.bound.size).toBeLessThanOrEqual(MAX_COUNT + 1)
      }),
      { numRuns: 300 },
    )
  })

  it('are made one by one when everything is forbidden', async () => {
    const broker = binder({ isWideForbidden: true })
    const bindings = new BoundedBindings(broker, MAX_COUNT)
    const patterns = Array.from({ length: 20 }, (_, index) => `key.${index}`)
    await Promise.all(patterns.map((pattern) => bindings.bind(pattern)))
    expect([...broker.bound].sort()).toEqual(patterns.sort())
    for (const pattern of patterns) await bindings.unbind(pattern)
    expect([...broker.bound]).toEqual([])
  })
})

it('takes a broader binding for a pattern with more than two #, whose keys it has', () => {
  const word = fc.constantFrom('a', 'b', '*', '#', '#')
  const path = fc.array(word, { minLength: 1, maxLength: 7 }).map((words) => words.join('.'))
  const key = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 6 }).map((words) => words.join('.'))
  fc.assert(
    fc.property(path, key, (pattern, key) => {
      const binding = bindingOf(pattern)
      const hashCount = (text: string) => text.split('.').filter((word) => word === '#').length
      expect(hashCount(binding)).toBeLessThanOrEqual(2)
      if (hashCount(pattern) <= 2) expect(binding).toBe(pattern)
      if (matches(pattern, key)) expect(matches(binding, key)).toBe(true)
    }),
  )
})
