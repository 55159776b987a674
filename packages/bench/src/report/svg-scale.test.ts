import { describe, expect, it } from 'vitest'
import { createScale, createTierScale } from './svg-scale.js'

describe('a linear scale', () => {
  it.each([
    [
      [3, 87],
      [0, 25, 50, 75, 100],
    ],
    [
      [0.3, 0.72],
      [0, 0.2, 0.4, 0.6, 0.8],
    ],
    [[1_000_000], [0, 250_000, 500_000, 750_000, 1_000_000]],
    [[], [0, 1]],
    [
      [0, 0],
      [0, 1],
    ],
  ])('labels %j with %j', (values, ticks) => {
    expect(createScale('linear', values).ticks).toEqual(ticks)
  })

  it('starts at zero, so that heights compare as the values do', () => {
    const scale = createScale('linear', [40, 80])
    expect(scale.at(0)).toBe(0)
    expect(scale.at(80)).toBeCloseTo(2 * scale.at(40))
  })
})

describe('a logarithmic scale', () => {
  it.each([
    [
      [120, 9_000_000],
      [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000],
    ],
    [
      [200, 9_000],
      [200, 500, 1_000, 2_000, 5_000, 10_000],
    ],
    [
      [0.04, 0.3],
      [0.02, 0.05, 0.1, 0.2, 0.5],
    ],
    [[1_000], [500, 1_000, 2_000]],
    [
      [0, -5, Number.NaN],
      [1, 2, 5, 10],
    ],
  ])('labels %j with %j', (values, ticks) => {
    expect(createScale('log', values).ticks).toEqual(ticks)
  })

  it('holds every value and makes equal ratios equal distances', () => {
    const scale = createScale('log', [30, 70_000])
    for (const value of [30, 500, 70_000]) {
      expect(scale.at(value)).toBeGreaterThanOrEqual(0)
      expect(scale.at(value)).toBeLessThanOrEqual(1)
    }
    expect(scale.at(1_000) - scale.at(100)).toBeCloseTo(scale.at(10_000) - scale.at(1_000))
  })
})

describe('a scale of tiers', () => {
  it('labels exactly the tiers and reaches from the first to the last', () => {
    const scale = createTierScale('log', [1_000, 10, 100, 10])
    expect(scale.ticks).toEqual([10, 100, 1_000])
    expect(scale.ticks.map((tick) => scale.at(tick))).toEqual([0, 0.5, 1])
  })

  it('puts a single tier in the middle', () => {
    expect(createTierScale('log', [500]).at(500)).toBe(0.5)
  })
})
