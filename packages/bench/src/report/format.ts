/** A whole number with separators. */
export function formatCount(count: number): string {
  return Math.round(count).toLocaleString('en')
}

/** Messages per second. */
export function formatRate(perSecond: number): string {
  return `${perSecond < 10 ? perSecond.toFixed(1) : formatCount(perSecond)} msg/s`
}

/** Milliseconds with three significant digits; microseconds matter below one. */
export function formatMs(ms: number | null): string {
  if (ms === null) return 'none'
  if (ms === 0) return '0ms'
  if (ms < 0.1) return `${ms.toFixed(3)}ms`
  if (ms < 10) return `${ms.toFixed(2)}ms`
  return ms < 100 ? `${ms.toFixed(1)}ms` : `${formatCount(ms)}ms`
}

/** A ratio in percent; shows 0.00% for zero only. */
export function formatPercent(ratio: number): string {
  const percent = ratio * 100
  if (percent !== 0 && Math.abs(percent) < 0.005) return `${percent.toPrecision(2)}%`
  return `${percent.toFixed(2)}%`
}

export function formatBytes(bytes: number): string {
  return bytes < 1_000_000_000 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${(bytes / 1_000_000_000).toFixed(2)} GB`
}

/** Three significant digits with k, M, G, for axes and tiles. */
export function formatCompact(value: number): string {
  const size = Math.abs(value)
  const [divisor, suffix] =
    size >= 999.5e6 ? [1e9, 'G'] : size >= 999.5e3 ? [1e6, 'M'] : size >= 1_000 ? [1e3, 'k'] : [1, '']
  const digits = value / divisor
  // `Number` removes trailing zeros: 1.00k would claim more precision than there is.
  return `${Number(digits.toPrecision(3))}${suffix}`
}
