import { describe, expect, it } from 'vitest'
import type { ResultColumn, ResultRow } from '../results/result.js'
import { combineRuns, median, spreadOf } from './medians.js'
import { NOT_MEASURED } from './row-scenario.js'

const COLUMNS: readonly ResultColumn[] = [
  { key: 'target', title: 'Target', unit: '', format: 'text' },
  { key: 'deliveriesPerSecond', title: 'Deliveries/s', unit: '1/s', format: 'rate' },
  { key: 'latencyMs.p99', title: 'p99', unit: 'ms', format: 'ms' },
  { key: 'gapCount', title: 'Gaps', unit: '', format: 'count', repeats: 'max' },
  { key: 'survivalRatio', title: 'Survival', unit: '', format: 'percent', repeats: 'min' },
]

function run(figures: Partial<ResultRow>): ResultRow {
  return {
    target: 'uws',
    mode: 'single',
    subscribers: 10,
    ...NOT_MEASURED,
    verdict: 'ok',
    verdictReason: null,
    repeatCount: 1,
    spread: {},
    repeat: 1,
    order: 1,
    ...figures,
  }
}

describe('a median', () => {
  it.each([
    [[], null],
    [[7], 7],
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[10, 9, 100], 10],
  ])('of %j is %s', (values, expected) => {
    expect(median(values)).toBe(expected)
  })

  it('comes with the smallest and the largest', () => {
    expect(spreadOf([3, 1, 2])).toEqual({ min: 1, max: 3 })
    expect(spreadOf([])).toBeNull()
  })
})

describe('repeats of one measurement', () => {
  it('become medians with their spread, members of members too', () => {
    const row = combineRuns(
      [300, 100, 200].map((value) =>
        run({ deliveriesPerSecond: value, latencyMs: { p50: 1, p95: 2, p99: value / 10, max: 99 } }),
      ),
      COLUMNS,
    )
    expect(row).toMatchObject({ target: 'uws', deliveriesPerSecond: 200, repeatCount: 3, publishedPerSecond: null })
    expect(row.latencyMs).toEqual({ p50: 1, p95: 2, p99: 20, max: 99 })
    expect(row.spread).toEqual({ deliveriesPerSecond: { min: 100, max: 300 }, 'latencyMs.p99': { min: 10, max: 30 } })
    expect(row).not.toHaveProperty('repeat')
    expect(row).not.toHaveProperty('order')
  })

  it('show losses however rare they are', () => {
    const runs = [
      run({ gapCount: 0, survivalRatio: 1 }),
      run({ gapCount: 7, survivalRatio: 0.9 }),
      run({ gapCount: 0 }),
    ]
    expect(combineRuns(runs, COLUMNS)).toMatchObject({ gapCount: 7, survivalRatio: 0.9 })
  })

  it('have the worst verdict of all, with its reason', () => {
    const runs = [
      run({}),
      run({ verdict: 'server saturated', verdictReason: 'late' }),
      run({ verdict: 'lost messages', verdictReason: '3 lost' }),
    ]
    expect(combineRuns(runs, COLUMNS)).toMatchObject({ verdict: 'lost messages', verdictReason: '3 lost' })
  })

  it('count without the figures of those that failed', () => {
    const runs = [
      run({ deliveriesPerSecond: 100 }),
      run({ deliveriesPerSecond: 5, verdict: 'failed', verdictReason: 'target uws was ended by SIGKILL' }),
    ]
    const row = combineRuns(runs, COLUMNS)
    expect(row).toMatchObject({ deliveriesPerSecond: 100, verdict: 'failed', repeatCount: 2 })
    expect(row.spread).toEqual({ deliveriesPerSecond: { min: 100, max: 100 } })
    expect(combineRuns(runs.slice(1), COLUMNS)).toMatchObject({ verdict: 'failed', spread: {} })
  })
})
