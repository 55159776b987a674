import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { FIGURES, figuresText, PAGE, readFigures, staleTables, withTables } from '../../scripts/lib/figures.mjs'
import { ROOT } from './blocks.js'

const tables = readFigures()
const DAY_MS = 86_400_000
const figures = {
  commit: 'abcdef12',
  date: '2026-01-01',
  measures: ['packages/native/crates'],
  columns: ['Target', 'Rate'],
  rows: [['native', '1']],
}

describe('the tables of docs/benchmarks.md', () => {
  it('are what their figures say', () => {
    const page = readFileSync(PAGE, 'utf8')
    expect(withTables(page, tables)).toBe(page)
    expect(tables.size).toBeGreaterThan(40)
  })

  it('are all made from figures, but for that of the commands', () => {
    const rest = readFileSync(PAGE, 'utf8').replaceAll(/<!-- figures: .*?<!-- \/figures -->/gs, '')
    expect(rest.match(/^\| --- .*/gm)).toHaveLength(1)
  })

  it.each([...tables])('%s says its commit, its date and code that exists', (name, one) => {
    expect(one).toMatchObject({
      commit: expect.stringMatching(/^[0-9a-f]{7,12}$/),
      date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    })
    expect(one.measures.filter((code) => !existsSync(path.join(ROOT, code)))).toEqual([])
    expect(one.measures).not.toEqual([])
    expect(readFileSync(path.join(FIGURES, `${name}.json`), 'utf8')).toBe(figuresText(one))
  })

  it('refuse figures that are older than the code they measure allows', () => {
    const changedAfter = (days: number) =>
      staleTables(new Map([['fan-out', figures]]), () => Date.parse(figures.date) + days * DAY_MS)
    expect(changedAfter(21)).toEqual([])
    expect(changedAfter(22)).toEqual([
      'fan-out was measured 22 days before the last change of packages/native/crates; 21 are allowed',
    ])
  })

  it('refuse a mark without figures, figures without a mark, and a row with a cell too few', () => {
    const page = '<!-- figures: a -->\nold\n<!-- /figures -->\n'
    expect(withTables(page, new Map([['a', figures]]))).toBe(
      '<!-- figures: a -->\n\n| Target | Rate |\n| --- | --- |\n| native | 1 |\n\n<!-- /figures -->\n',
    )
    expect(() => withTables(page, new Map())).toThrow('no a.json')
    expect(() => withTables('', new Map([['a', figures]]))).toThrow('no place for a')
    expect(() => withTables(page, new Map([['a', { ...figures, rows: [['native']] }]]))).toThrow('not 2 cells')
  })
})
