import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import type { ResultRecord } from '../results/result.js'
import { csvText } from './csv.js'

/** A reader after RFC 4180 §2, written without a look at the writer. */
function readCsv(text: string): string[][] {
  const lines: string[][] = [[]]
  let rest = text
  while (rest !== '') {
    const [whole = '', quoted, plain = '', end = ''] = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(rest) ?? []
    if (whole === '') throw new Error(`no field: ${rest.slice(0, 40)}`)
    lines.at(-1)?.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === '\r\n') lines.push([])
    rest = rest.slice(whole.length)
  }
  return lines.slice(0, -1)
}

function cells(record: ResultRecord): Record<string, string>[] {
  const [head = [], ...lines] = readCsv(csvText(record))
  return lines.map((line) => Object.fromEntries(head.map((key, index) => [key, line[index] ?? 'no such field'])))
}

describe('the CSV file', () => {
  it('has a line per row with plain numbers, spreads, verdict and environment', () => {
    const record = fixtureRecord({ tiers: [10, 1_000], targets: ['raw', 'uws'] })
    const lines = cells(record)
    expect(lines).toHaveLength(4)
    const [row] = record.rows
    expect(lines[0]).toMatchObject({
      scenario: 'fanout',
      target: 'raw',
      subscribers: '10',
      deliveriesPerSecond: String(row?.deliveriesPerSecond),
      'deliveriesPerSecond.min': String(row?.spread.deliveriesPerSecond?.min),
      'latencyMs.p99': String(row?.latencyMs?.p99),
      verdict: 'generator saturated',
      repeatCount: '5',
      command: record.command,
      commit: record.machine.gitCommit,
      congestionControl: 'bbr',
      kernel: 'Linux 6.1.0',
      'version.uws': '20.52.0',
    })
  })

  it('has no spread of what identifies a row', () => {
    const record = fixtureRecord({ tiers: [10], targets: ['uws'] })
    const rows = record.rows.map((row) => ({ ...row, spread: { ...row.spread, subscribers: { min: 10, max: 10 } } }))
    expect(csvText({ ...record, rows })).not.toContain('subscribers.min')
  })

  it('has as many fields in every line as in the head', () => {
    const lengths = readCsv(csvText(fixtureRecord())).map((line) => line.length)
    expect(new Set(lengths).size).toBe(1)
  })

  it('keeps commas, quotes and line ends in texts', () => {
    const record = fixtureRecord({ tiers: [10], targets: ['uws'] })
    const verdictReason = 'it said "no",\r\nand ended'
    const rows = record.rows.map((row) => ({ ...row, verdictReason }))
    expect(cells({ ...record, rows })[0]?.verdictReason).toBe(verdictReason)
  })

  it('leaves a field empty where nothing was measured', () => {
    expect(cells(fixtureRecord({ tiers: [10], targets: ['raw'] }))[0]?.['serverEventLoopLagMs.p99']).toBe('')
  })
})
