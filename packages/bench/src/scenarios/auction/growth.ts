/** One tier: connections, and a latency. */
export interface GrowthPoint {
  readonly connections: number
  readonly latencyMs: number
}

/**
 * The exponent b of latency ~ connections^b: the slope of the straight line through the logarithms, by least squares.
 * `null` with fewer than two different tiers.
 */
export function growthExponent(points: readonly GrowthPoint[]): number | null {
  const known = points.filter(({ connections, latencyMs }) => connections > 0 && latencyMs > 0)
  const xs = known.map(({ connections }) => Math.log(connections))
  const ys = known.map(({ latencyMs }) => Math.log(latencyMs))
  const [meanX, meanY] = [mean(xs), mean(ys)]
  const varianceX = sum(xs.map((x) => (x - meanX) ** 2))
  return varianceX === 0 || known.length < 2
    ? null
    : sum(xs.map((x, index) => (x - meanX) * ((ys[index] ?? meanY) - meanY))) / varianceX
}

function mean(values: readonly number[]): number {
  return sum(values) / Math.max(1, values.length)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
