import { describe, expect, it } from 'vitest'
import { leastSquares } from './least-squares.js'

describe('a fitted line', () => {
  it('finds the costs that made the windows', () => {
    const windows = [
      [1, 100, 0],
      [1, 0, 1_000],
      [2, 300, 500],
      [1, 50, 4_000],
    ].map(([seconds = 0, writes = 0, frames = 0]) => ({
      counts: [seconds, writes, frames],
      total: seconds * 0.05 + writes * 2e-4 + frames * 4e-6,
    }))
    const { coefficients, residual } = leastSquares(windows)
    expect(coefficients[0]).toBeCloseTo(0.05, 9)
    expect(coefficients[1]).toBeCloseTo(2e-4, 12)
    expect(coefficients[2]).toBeCloseTo(4e-6, 13)
    expect(residual).toBeLessThan(1e-9)
  })

  it('tells how far the windows are from it', () => {
    const windows = [10, 20, 30].map((count, index) => ({ counts: [count], total: count * (index === 1 ? 1.1 : 1) }))
    const { coefficients, residual } = leastSquares(windows)
    expect(coefficients[0]).toBeGreaterThan(1)
    expect(coefficients[0]).toBeLessThan(1.1)
    expect(residual).toBeGreaterThan(0.02)
    expect(residual).toBeLessThan(0.1)
  })

  it('has no negative cost', () => {
    const windows = [
      { counts: [1, 10], total: 10 },
      { counts: [1, 20], total: 19 },
      { counts: [2, 20], total: 18 },
    ]
    const { coefficients } = leastSquares(windows)
    expect(Math.min(...coefficients)).toBe(0)
    expect(coefficients[1]).toBeGreaterThan(0.8)
  })

  it('gives 0 to what never happened, and no residual without spare windows', () => {
    expect(leastSquares([{ counts: [2, 0], total: 6 }])).toEqual({ coefficients: [3, 0], residual: null })
  })

  it('refuses a window without a cost', () => {
    expect(() => leastSquares([{ counts: [1], total: 0 }])).toThrow(RangeError)
    expect(() =>
      leastSquares([
        { counts: [1], total: 1 },
        { counts: [], total: 1 },
      ]),
    ).toThrow(RangeError)
  })
})
