import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PatternMatcher } from './pattern-matcher.js'
import { SegmentedLog, type Wants } from './segmented-log.js'
import { type ReadSpan, SlicedRead } from './sliced-read.js'

const MAX_MESSAGES = 40

function logOf(keys: readonly string[]): SegmentedLog {
  const log = new SegmentedLog({ maxMessages: MAX_MESSAGES, maxBytes: 1_048_576 }, 'e')
  for (const key of keys) append(log, key)
  return log
}

function append(log: SegmentedLog, key: string): void {
  log.append({ key, payload: new Uint8Array(1), isBinary: false }, log.lastOffset + 1, 1, 0)
}

const step = fc.oneof(
  fc.record({ name: fc.constant('read' as const), steps: fc.nat(40) }),
  fc.record({ name: fc.constant('append' as const), count: fc.nat(20) }),
  fc.record({ name: fc.constant('skip' as const), count: fc.integer({ min: 1, max: 3 }) }),
)

it('reads in slices what it reads at once, whatever is logged in between, or says gap', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a', 'b', 'a.b.a'), { minLength: 10, maxLength: 60 }),
      fc.constantFrom('a', '#', '#.b.#', '#.a.c.#'),
      fc.option(fc.integer({ min: 1, max: 15 }), { nil: undefined }),
      fc.integer({ min: 1, max: 9 }),
      fc.nat(20),
      fc.option(fc.integer({ min: 0, max: 70 }), { nil: undefined }),
      fc.option(fc.integer({ min: 1, max: 10 }), { nil: undefined }),
      fc.array(step, { maxLength: 30 }),
      (keys, pattern, newestCount, limit, start, before, maxCount, steps) => {
        const log = logOf(keys)
        const matcher = new PatternMatcher(pattern)
        const isWanted: Wants = (key, _timeMs, budget) => matcher.matches(key, budget)
        const options = {
          log,
          start: Math.max(start, log.heldAfter),
          before,
          newestCount,
          maxCount,
          limit,
          key: undefined,
          mayBeCut: () => log.mayHaveDropped(undefined),
          reportsCut: true,
          wants: () => isWanted,
          gapOf: ({ hasDropped }: ReadSpan) => (hasDropped ? ('history-expired' as const) : undefined),
        }
        const begin = () => new SlicedRead(options)
        const atOnce = begin()
        expect(atOnce.advance({ left: Number.POSITIVE_INFINITY })).toBe(true)
        const { isCut: wasCut, ...expected } = atOnce.result()
        const sliced = begin()
        let isDone = false
        for (const step of steps) {
          if (step.name === 'append') for (let count = step.count; count > 0; count--) append(log, 'a.b.a')
          else if (step.name === 'skip') log.skipTo(log.lastOffset + step.count, 1)
          else if (!isDone) isDone = sliced.advance({ left: step.steps })
        }
        for (let slices = 0; !isDone; slices++) {
          isDone = sliced.advance({ left: 1 })
          expect(slices).toBeLessThan(4 * MAX_MESSAGES)
        }
        const { gap, isCut, ...result } = sliced.result()
        // Messages that were dropped meanwhile may have been wanted.
        if (wasCut) expect(isCut).toBe(true)
        if (gap === undefined) expect(result).toEqual(expected)
        else expect(log.heldAfter).toBeGreaterThan(options.start)
        const end = before === undefined ? keys.length : Math.max(0, Math.min(keys.length, before - 1))
        if (!expected.isPartial) expect(result.position.offset).toBeGreaterThanOrEqual(end)
        for (const { position } of result.messages) expect(position?.offset).toBeLessThanOrEqual(end)
      },
    ),
    { numRuns: 2_000 },
  )
})
