import { describe, expect, it } from 'vitest'
import type { ResultRow } from '../../results/result.js'
import { lineOf } from './growth.js'

const rows = (...points: readonly (readonly [nodes: number, cost: number | null])[]) =>
  points.map(([nodes, cost]) => ({ nodes, cost })) as unknown as readonly ResultRow[]

describe('the growth of a figure with the nodes', () => {
  it('is the line through what was measured', () => {
    expect(lineOf(rows([8, 20], [16, 36], [32, 68]), 'cost')).toEqual({ base: 4, slope: 2 })
    const { base = 0, slope = 0 } = lineOf(rows([8, 10], [16, 12], [32, 11]), 'cost') ?? {}
    expect(slope).toBeCloseTo(0.027, 2)
    expect(base).toBeCloseTo(10.5, 1)
  })

  it('is not known from one size, or of a figure that was not measured', () => {
    expect(lineOf(rows([8, 1], [8, 2]), 'cost')).toBeNull()
    expect(lineOf(rows([8, 1], [16, null]), 'cost')).toBeNull()
  })
})
