import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import type { ResultRecord } from '../results/result.js'
import { type Comparison, compareResults } from './compare.js'
import { compareText } from './compare-text.js'
import { parseFailOn } from './fail-on.js'

const LIKE = { leastChange: 0.03 }
const SMALL = { tiers: [100, 1_000], targets: ['webmq-native', 'uws'] }
const COST = 'deliveriesPerServerCpuSecond'

function changesOf({ rows }: Comparison, key: string): (string | undefined)[] {
  return rows.map(({ cells }) => cells.find(({ column }) => column.key === key)?.difference?.change)
}

/** Changes members of one row of a record. */
function withRow(record: ResultRecord, index: number, change: object): ResultRecord {
  return { ...record, rows: record.rows.map((row, place) => (place === index ? { ...row, ...change } : row)) }
}

describe('comparing results', () => {
  it('finds nothing in another run of the same', () => {
    for (const seed of [2, 3, 4]) {
      const comparison = compareResults(fixtureRecord(), fixtureRecord({ seed }), LIKE)
      expect(comparison.rows).toHaveLength(36)
      expect(new Set(changesOf(comparison, COST))).toEqual(new Set(['within noise']))
    }
  })

  it('finds what has become a quarter dearer or cheaper, in every row', () => {
    const slower = compareResults(fixtureRecord(), fixtureRecord({ seed: 2, speed: 0.75 }), LIKE)
    expect(new Set(changesOf(slower, COST))).toEqual(new Set(['worse']))
    const faster = compareResults(fixtureRecord(), fixtureRecord({ seed: 2, speed: 1.25 }), LIKE)
    expect(new Set(changesOf(faster, COST))).toEqual(new Set(['better']))
  })

  it('does not find the same change in runs that are much noisier', () => {
    const before = fixtureRecord({ noise: 0.3 })
    const changes = changesOf(compareResults(before, fixtureRecord({ seed: 2, speed: 0.9, noise: 0.3 }), LIKE), COST)
    expect(changes.filter((change) => change !== 'within noise').length).toBeLessThanOrEqual(2)
  })

  it('matches rows by what identifies them, in whatever order, and names those without a counterpart', () => {
    const before = fixtureRecord({ ...SMALL, tiers: [100, 1_000] })
    const after = fixtureRecord({ ...SMALL, tiers: [1_000, 5_000] })
    const comparison = compareResults(before, { ...after, rows: [...after.rows].reverse() }, LIKE)
    expect(comparison.rows.map(({ name }) => name)).toEqual([
      'webmq-native, 1,000 connections',
      'uws, 1,000 connections',
    ])
    expect(comparison.onlyBefore).toEqual(['webmq-native, 100 connections', 'uws, 100 connections'])
    expect(comparison.onlyAfter).toEqual(['uws, 5,000 connections', 'webmq-native, 5,000 connections'])
  })

  it('compares two targets of one run', () => {
    const record = fixtureRecord(SMALL)
    const comparison = compareResults(record, record, { ...LIKE, targets: ['uws', 'webmq-native'] })
    expect(comparison.rows.map(({ name }) => name)).toEqual(['100 connections', '1,000 connections'])
    expect(changesOf(comparison, COST)).toEqual(['better', 'better'])
    expect(comparison.warnings).toEqual([])
  })

  it('takes lost messages for worse whatever the figures', () => {
    const after = withRow(fixtureRecord(SMALL), 0, { verdict: 'lost messages', verdictReason: '3 gaps' })
    const comparison = compareResults(fixtureRecord(SMALL), after, LIKE)
    expect(comparison.rows[0]?.change).toBe('worse')
    expect(parseFailOn('worse', comparison)(comparison)).toEqual([
      "webmq-native, 100 connections: 'ok' has become 'lost messages'",
    ])
    expect(compareText(comparison, false)).toContain('webmq-native, 100 connections: ok -> lost messages')
  })

  it('says what else differs', () => {
    const after = fixtureRecord(SMALL)
    const { warnings } = compareResults(
      fixtureRecord(SMALL),
      {
        ...after,
        machine: { ...after.machine, kernel: 'Linux 6.9.0', gitCommit: 'feed', loadAverage: 1.5 },
        versions: { ...after.versions, uws: '20.60.0' },
        config: { ...after.config, payloadBytes: 200, tiers: [1] },
      },
      LIKE,
    )
    expect(warnings).toEqual([
      'Kernel differs: Linux 6.1.0 and Linux 6.9.0.',
      'uws differs: 20.52.0 and 20.60.0.',
      'The setting payloadBytes differs: 100 and 200.',
      'The machine was not quiet before the second run: load 1.5.',
    ])
  })

  it('refuses what has nothing in common', () => {
    const record = fixtureRecord(SMALL)
    expect(() => compareResults(record, { ...record, scenario: 'paced' }, LIKE)).toThrow(/'fanout' and 'paced'/)
    expect(() => compareResults(record, fixtureRecord({ ...SMALL, tiers: [7] }), LIKE)).toThrow(/no row in common/)
    const targets = ['uws', 'nothing'] as const
    expect(() => compareResults(record, record, { ...LIKE, targets })).toThrow(/second has no rows/)
  })
})

describe('--fail-on', () => {
  const comparison = compareResults(fixtureRecord(SMALL), fixtureRecord({ ...SMALL, seed: 2, speed: 0.75 }), LIKE)
  const find = (text: string, found = comparison) => parseFailOn(text, found)(found)

  it.each([
    [`${COST} worse`, 4],
    [`${COST}<0.9x`, 4],
    [`${COST} < 0.5`, 0],
    [`${COST}>=1x`, 0],
    ['gapCount worse', 0],
    ['missing', 0],
  ])('%s is found %i times', (text, count) => {
    expect(find(text)).toHaveLength(count)
  })

  it('finds all that is worse', () => {
    expect(find('worse')).toContainEqual(
      expect.stringMatching(/^uws, 100 connections: deliveriesPerSecond is worse \(0\.\d+x\)/),
    )
  })

  it('finds rows that are missing', () => {
    const partly = compareResults(fixtureRecord(SMALL), fixtureRecord({ ...SMALL, tiers: [100] }), LIKE)
    expect(find('missing', partly)).toHaveLength(2)
  })

  it('does not pass for want of figures', () => {
    const before = fixtureRecord({ ...SMALL, tiers: [100] })
    const after = withRow(before, 0, { verdict: 'failed', verdictReason: 'it died' })
    expect(find(`${COST}<0.9x`, compareResults(before, after, LIKE))).toEqual([
      `webmq-native: ${COST} was not measured in the second result`,
    ])
    const empty = { ...before, rows: before.rows.map((row) => ({ ...row, [COST]: null })) }
    expect(find(`${COST}<0.9x`, compareResults(empty, empty, LIKE))).toEqual([`${COST} was measured in no row`])
  })

  it.each([['loss'], ['p98<1x'], [`${COST}=1`], ['']])('refuses %j', (text) => {
    expect(() => parseFailOn(text, comparison)).toThrow(/--fail-on/)
  })
})

describe('a comparison as text', () => {
  it('lists in text what is beyond noise, or everything', () => {
    const comparison = compareResults(fixtureRecord(SMALL), fixtureRecord({ ...SMALL, seed: 2, speed: 0.75 }), LIKE)
    expect(compareText(comparison, false)).not.toMatch(/serverRssBytes/)
    expect(compareText(comparison, true)).toMatch(/serverRssBytes.*within noise/)
    expect(compareText(comparison, false)).toMatch(/4 rows: 0 figures better, \d+ worse, \d+ within noise/)
  })
})
