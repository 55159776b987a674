import { describe, expect, it } from 'vitest'
import { worstOf } from '../results/judgement.js'
import { judge } from './verdict.js'

describe('a verdict', () => {
  it.each([
    [{}, 'ok', null],
    [{ lostCount: 0, generatorUtilization: 0.9, serverLate: null }, 'ok', null],
    [{ generatorUtilization: null }, 'ok', null],
    [{ generatorUtilization: 0.951 }, 'generator saturated', 'the generator used 95% of its core'],
    [{ generatorLate: 'sent 30 ms late' }, 'generator saturated', 'sent 30 ms late'],
    [{ serverLate: 'published 200 ms late' }, 'server saturated', 'published 200 ms late'],
    [{ generatorUtilization: 0.99, serverLate: 'late' }, 'generator saturated', 'the generator used 99% of its core'],
    [{ lostCount: 1_000, generatorUtilization: 0.99 }, 'lost messages', '1,000 lost'],
    [{ duplicateCount: 1, reorderedCount: 2 }, 'lost messages', '1 doubled, 2 out of order'],
    [{ failure: '3 pings were not answered' }, 'lost messages', '3 pings were not answered'],
  ] as const)('of %j is %j', (evidence, verdict, verdictReason) => {
    expect(judge(evidence)).toEqual({ verdict, verdictReason })
  })

  it('of several is the worst', () => {
    const ok = judge({})
    const generator = judge({ generatorUtilization: 1 })
    const lost = judge({ lostCount: 1 })
    expect(worstOf([ok, generator, lost, ok])).toEqual(lost)
    expect(worstOf([ok, judge({ serverLate: 'late' }), generator])).toEqual(generator)
    expect(worstOf([])).toEqual(ok)
  })
})
