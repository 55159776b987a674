import { describe, expect, it } from 'vitest'
import { judgeDifference, type Measurement } from './noise-band.js'

const of = (median: number, half: number, repeatCount = 5): Measurement => ({
  median,
  spread: { min: median - half, max: median + half },
  repeatCount,
})
const change = (before: Measurement, after: Measurement, better: 'higher' | 'lower' = 'higher') =>
  judgeDifference(before, after, better, 0.03).change

describe('a difference', () => {
  it('is noise while the bands of the repeats overlap', () => {
    expect(change(of(100, 10), of(120, 10))).toBe('within noise')
    expect(change(of(100, 5), of(120, 5))).toBe('better')
    expect(change(of(120, 5), of(100, 5))).toBe('worse')
  })

  it('is better or worse by the direction of the figure', () => {
    expect(change(of(100, 5), of(120, 5), 'lower')).toBe('worse')
    expect(change(of(120, 5), of(100, 5), 'lower')).toBe('better')
  })

  it('has a wider band the fewer repeats there are', () => {
    expect(change(of(100, 6, 10), of(115, 6, 10))).toBe('better')
    expect(change(of(100, 6, 2), of(115, 6, 2))).toBe('within noise')
  })

  it('of single runs is noise up to a tenth on both sides', () => {
    const single = (median: number): Measurement => ({ median, repeatCount: 1 })
    expect(change(single(100), single(120))).toBe('within noise')
    expect(change(single(100), single(125))).toBe('better')
  })

  it('that is certain but tiny is noise', () => {
    expect(change(of(100, 0.1), of(102, 0.1))).toBe('within noise')
    expect(change(of(100, 0.1), of(104, 0.1))).toBe('better')
  })

  it('from nothing to something has no ratio, and counts', () => {
    expect(judgeDifference(of(0, 0), of(12, 0), 'lower', 0.03)).toMatchObject({ ratio: null, change: 'worse' })
    expect(judgeDifference(of(12, 0), of(0, 0), 'lower', 0.03)).toMatchObject({ ratio: 0, change: 'better' })
    expect(judgeDifference(of(0, 0), of(0, 0), 'lower', 0.03)).toMatchObject({ ratio: null, change: 'within noise' })
  })

  it('says between which ratios chance lies', () => {
    // 1 + 2/5 times the half width of 10.
    const { ratio, lowRatio, highRatio } = judgeDifference(of(100, 10), of(200, 10), 'higher', 0.03)
    expect(ratio).toBe(2)
    expect(lowRatio).toBeCloseTo(186 / 114)
    expect(highRatio).toBeCloseTo(214 / 86)
  })
})
