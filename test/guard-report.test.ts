import { describe, expect, it } from 'vitest'
import { guardReport } from '../packages/bench/guard/report.mjs'
import { fixtureRecord } from '../packages/bench/test/report-fixture.js'

const SIDES = [{ name: 'base' }, { name: 'this' }]
const COST = 'deliveriesPerServerCpuSecond'

interface Play {
  readonly verdict: string
  readonly verdictReason?: string
  /** Of deliveries per CPU second and, inverted, of latency. */
  readonly speed?: number
}

/** Three rounds of one side, the last with this verdict. */
function rounds({ verdict, verdictReason, speed = 1 }: Play) {
  return [1, 2, 3].map((round) => {
    const record = fixtureRecord({ targets: ['webmq-native'], tiers: [100], speed, noise: 0 })
    const judged = round < 3 ? { verdict: 'ok', verdictReason: null } : { verdict, verdictReason }
    const rows = record.rows.map((row) => ({ ...row, latencyMs: { ...row.latencyMs, p99: 10 / speed }, ...judged }))
    return { ...record, rows }
  })
}

function reportOf(before: Play, after: Play, figures = [COST, 'latencyMs.p99']) {
  const row = { name: 'row', figures, target: 'webmq-native', records: [rounds(before), rounds(after)] }
  return guardReport([row], { sides: SIDES, leastChange: 0.03 })
}

describe('the report of bench:guard', () => {
  it('says what is worse beyond the noise, and what is better', () => {
    const worse = reportOf({ verdict: 'ok' }, { verdict: 'ok', speed: 0.5 })
    expect(worse.isWorse).toBe(true)
    expect(worse.text).toContain(`Worse beyond the noise: row, ${COST} 0.500x`)
    expect(worse.text).toContain('Worse beyond the noise: row, latencyMs.p99 2.000x')
    expect(reportOf({ verdict: 'ok', speed: 0.5 }, { verdict: 'ok' })).toMatchObject({ isWorse: false })
  })

  it('has no figure of a row whose publishes were refused at both sides, and says so in words', () => {
    const refused = { verdict: 'publishes failed', verdictReason: '900 of 1,000, the first: E_RATE_LIMIT' }
    const { text, isWorse, unmeasured } = reportOf(refused, { ...refused, speed: 0.5 })
    expect({ isWorse, unmeasured }).toEqual({ isWorse: false, unmeasured: [] })
    expect(text.match(/no figure {2,}no figure {2,}– .*no figure$/gm)).toHaveLength(2)
    expect(text).toContain('No figure: row, base: publishes failed: 900 of 1,000, the first: E_RATE_LIMIT')
    expect(text).toContain('No figure: row, this: publishes failed')
    expect(text).not.toMatch(/better|[0-9]x/)
  })

  it('has no figure when one round of one side refused, and calls that verdict worse', () => {
    const { text, isWorse } = reportOf({ verdict: 'ok' }, { verdict: 'publishes failed', verdictReason: 'one' })
    expect(isWorse).toBe(true)
    expect(text).toContain('Worse beyond the noise: row, verdict')
    expect(text).toMatch(/measured {2,}no figure/)
    expect(text).not.toContain('No figure: row, base')
  })

  it.each(['machine saturated', 'generator saturated', 'broker saturated', 'server saturated'])(
    'has the cost of a row that was %s, and no latency',
    (verdict) => {
      const saturated = { verdict, verdictReason: '1.98 of 2 cores were busy' }
      const { text } = reportOf(saturated, { ...saturated, speed: 0.5 })
      expect(text).toContain(`Worse beyond the noise: row, ${COST} 0.500x`)
      expect(text).toContain(`No figure: row, this: ${verdict}: 1.98 of 2 cores were busy`)
      expect(text).not.toContain('row, latencyMs')
    },
  )

  it('takes the row of a result with several by its cells', () => {
    const records = [rounds({ verdict: 'ok' }), rounds({ verdict: 'ok', speed: 0.5 })].map((all) =>
      all.map((record) => ({
        ...record,
        rows: record.rows.flatMap((row) => [
          { ...row, fault: 'none', [COST]: 7 },
          { ...row, fault: 'freeze' },
        ]),
      })),
    )
    const text = (fault: string) =>
      guardReport([{ name: 'row', figures: [COST], target: 'webmq-native', where: { fault }, records }], {
        sides: SIDES,
        leastChange: 0.03,
      }).text
    expect(text('none')).toContain('1.000x')
    expect(text('freeze')).toContain('0.500x')
  })

  it('names figures that a result does not have', () => {
    expect(reportOf({ verdict: 'ok' }, { verdict: 'ok' }, ['other']).unmeasured).toEqual(['row: other'])
  })
})
