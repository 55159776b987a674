import type { ResultRow } from '../../results/result.js'
import { cellOf } from '../../results/result.js'

/** A figure as `base + slope x nodes`, by least squares. */
export interface Line {
  readonly base: number
  readonly slope: number
}

/** @returns `null` when it was measured at fewer than two numbers of nodes */
export function lineOf(rows: readonly ResultRow[], key: string): Line | null {
  const points = rows.flatMap((row) => {
    const [x, y] = [cellOf(row, 'nodes'), cellOf(row, key)]
    return typeof x === 'number' && typeof y === 'number' ? [{ x, y }] : []
  })
  if (new Set(points.map(({ x }) => x)).size < 2) return null
  const meanOf = (axis: 'x' | 'y') => points.reduce((sum, point) => sum + point[axis], 0) / points.length
  const [meanX, meanY] = [meanOf('x'), meanOf('y')]
  const covariance = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0)
  const variance = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
  const slope = covariance / variance
  return { base: meanY - slope * meanX, slope }
}
