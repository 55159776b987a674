import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
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
    const pattern = fc.constantFrom('#', 'a', 'b', 'c.*', 'd', 'e', 'f.#', 'g', 'h')
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
          if (isBind) expect(broker.bound.has(pattern) || broker.bound.has('#')).toBe(true)
        }
        await broker.settled()
        for (const pattern of wanted) expect(broker.bound.has(pattern) || broker.bound.has('#')).toBe(true)
        for (const pattern of broker.bound) expect(wanted.has(pattern) || pattern === '#').toBe(true)
        if (wanted.size * 2 <= MAX_COUNT) expect(broker.bound).toEqual(wanted)
        if (wanted.size > MAX_COUNT) expect(broker.bound.has('#')).toBe(true)
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
