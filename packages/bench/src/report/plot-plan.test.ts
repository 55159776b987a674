import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import type { ResultColumn, ResultRecord, ResultRow } from '../results/result.js'
import { planPlots } from './plot-plan.js'

const RATE: ResultColumn = { key: 'ratePerSecond', title: 'Offered/s', unit: '1/s', format: 'rate' }

/** The rows of the fixture once per variant, with what the variant adds. */
function varied(record: ResultRecord, variants: readonly Partial<ResultRow>[], columns: readonly ResultColumn[] = []) {
  return {
    ...record,
    columns: [...columns, ...record.columns],
    identity: [...record.identity, ...columns.map(({ key }) => key)],
    rows: variants.flatMap((variant) => record.rows.map((row) => ({ ...row, ...variant }))),
  } as ResultRecord
}

describe('what is plotted against what', () => {
  it('is connections, with a line per target', () => {
    const plan = planPlots(fixtureRecord({ targets: ['raw', 'uws'], tiers: [10, 100] }))
    expect(plan.x?.key).toBe('subscribers')
    expect(plan.seriesNames).toEqual(['raw', 'uws'])
    expect(plan.facets.map(({ name }) => name)).toEqual([''])
  })

  it('is whatever else varies when connections do not', () => {
    const record = fixtureRecord({ targets: ['raw', 'uws'], tiers: [1_000] })
    const plan = planPlots(varied(record, [{ ratePerSecond: 100 }, { ratePerSecond: 1_000 }], [RATE]))
    expect(plan.x?.key).toBe('ratePerSecond')
    expect(plan.facets).toHaveLength(1)
  })

  it('is apart for each rate when connections vary too', () => {
    const record = fixtureRecord({ targets: ['raw', 'uws'], tiers: [10, 100] })
    const plan = planPlots(varied(record, [{ ratePerSecond: 100 }, { ratePerSecond: 1_000 }], [RATE]))
    expect(plan.x?.key).toBe('subscribers')
    expect(plan.facets.map(({ name, rows }) => [name, rows.length])).toEqual([
      ['100 offered/s', 4],
      ['1k offered/s', 4],
    ])
  })

  it('has a line per mode for a target alone', () => {
    const record = fixtureRecord({ targets: ['uws'], tiers: [10, 100] })
    const plan = planPlots(varied(record, [{ mode: 'json' }, { mode: 'msgpack' }]))
    expect(plan.seriesNames).toEqual(['json', 'msgpack'])
    expect(plan.facets).toHaveLength(1)
  })

  it('leaves out what is the same everywhere, and puts throughput and its cost first', () => {
    const { metrics } = planPlots(fixtureRecord())
    const keys = metrics.map(({ key }) => key)
    expect(keys.slice(0, 2)).toEqual(['deliveriesPerSecond', 'deliveriesPerServerCpuSecond'])
    expect(keys).not.toContain('gapCount')
    expect(keys).not.toContain('latencyMs.p95')
    expect(metrics.find(({ key }) => key === 'latencyMs.p99')?.title).toBe('Latency p99')
  })
})
