import { describe, expect, it } from 'vitest'
import { growthExponent } from './growth.js'
import { PUBLISHED_ROUNDS, publishedExponent } from './reference.js'

describe('the growth exponent', () => {
  it('is that of a power law', () => {
    const law = (exponent: number) =>
      [100, 1_000, 3_500, 10_000].map((connections) => ({ connections, latencyMs: 3 * connections ** exponent }))
    expect(growthExponent(law(0.7))).toBeCloseTo(0.7, 9)
    expect(growthExponent(law(0))).toBeCloseTo(0, 9)
  })

  it('needs two tiers that were measured', () => {
    const one = { connections: 100, latencyMs: 5 }
    expect(growthExponent([])).toBeNull()
    expect(growthExponent([one, one])).toBeNull()
    expect(growthExponent([one, { connections: 1_000, latencyMs: 0 }])).toBeNull()
  })

  it('of the published rounds is what their authors call about 0.7, except in the round that failed', () => {
    const exponents = PUBLISHED_ROUNDS.map((round) => [round.title, publishedExponent(round)?.toFixed(2)])
    expect(exponents).toEqual([
      ['round 1', '0.98'],
      ['round 2', '0.68'],
      ['round 4', '0.73'],
    ])
  })
})
