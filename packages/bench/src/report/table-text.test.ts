import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import { tableText } from './table-text.js'

const { columns, identity, rows } = fixtureRecord({ tiers: [10, 1_000], targets: ['raw', 'uws'] })

describe('the table for terminals', () => {
  it('aligns its columns', () => {
    const lines = tableText(columns, identity, rows, 1_000).split('\n')
    expect(lines).toHaveLength(2 + rows.length)
    const end = (lines[0] ?? '').indexOf('Deliveries/s') + 'Deliveries/s'.length
    for (const line of lines.slice(2)) expect(line.slice(0, end)).toMatch(/\S\/s$/)
  })

  it('goes on below when it is too wide, and says again what each row is', () => {
    const blocks = tableText(columns, identity, rows, 80).split('\n\n')
    expect(blocks.length).toBeGreaterThan(1)
    for (const block of blocks) {
      expect(block).toMatch(/^Target\s+Mode\s+Connections/)
      for (const line of block.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    }
    for (const { title } of columns) expect(blocks.join('\n')).toContain(title)
  })

  it('leaves out what nobody measured, and dashes what some did not', () => {
    const raw = rows.filter(({ target }) => target === 'raw')
    expect(tableText(columns, identity, raw, 1_000)).not.toContain('Loop lag')
    expect(tableText(columns, identity, rows, 1_000)).toMatch(/raw .* –/)
  })
})
