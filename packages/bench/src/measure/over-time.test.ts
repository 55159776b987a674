import { describe, expect, it } from 'vitest'
import { growthPerSecond, type Moment, stepMsOf } from './over-time.js'

describe('a run over time', () => {
  it('is looked at once a second, and at most 600 times', () => {
    expect([1_000, 600_000, 601_000, 86_400_000].map(stepMsOf)).toEqual([1_000, 1_000, 1_002, 144_000])
  })

  it('grows by what was counted between two moments, in the time that really passed', () => {
    const moments: Moment<'delivered' | 'broker'>[] = [
      { atMs: 0, counts: { delivered: 5, broker: null } },
      { atMs: 1_000, counts: { delivered: 105, broker: 1 } },
      { atMs: 3_000, counts: { delivered: 105, broker: 1.5 } },
      { atMs: 3_000, counts: { delivered: 200, broker: 2 } },
    ]
    expect(growthPerSecond(moments, 'delivered')).toEqual([100, 0, null])
    expect(growthPerSecond(moments, 'broker')).toEqual([null, 0.25, null])
    expect(growthPerSecond(moments.slice(0, 1), 'delivered')).toEqual([])
  })
})
