import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from './blocks.js'
import { checkSources } from './sources.js'

const URL = 'https://example.com/docs'
const page = (cell: string, definition = `[a]: ${URL} "read 2026-06-01"`) =>
  `# T\n\n| | WebMQ | Other |\n| --- | --- | --- |\n| history | yes | ${cell} |\n\n| system | lost |\n| --- | --- |\n| Other | 1 |\n\n${definition}\n`
const check = (cell: string, today = '2026-06-02', definition?: string) =>
  checkSources('page.md', page(cell, definition), new Date(`${today}T12:00:00Z`))

describe('what the docs say of other products', () => {
  it.each([
    ['README.md', 20],
    ['docs/comparison.md', 200],
    ['docs/scaling.md', 10],
  ])('has a source in each cell of %s, that was read within 90 days', (file, minimum) => {
    const { cells, defects, warnings } = checkSources(file, readFileSync(path.join(ROOT, file), 'utf8'), new Date())
    for (const warning of warnings) console.warn(warning)
    expect(cells.length).toBeGreaterThanOrEqual(minimum)
    expect(defects).toEqual([])
  })

  it('has cells in tables with a column of ours, and its own column needs no source', () => {
    expect(check('[no][a]')).toEqual({ cells: ['Other: history'], defects: [], warnings: [] })
    expect(check('[9 KiB](client.md#sizes), [no][a]').defects).toEqual([])
  })

  it('fails 90 days after it was read, warns from day 75, and says which cells to read again', () => {
    const sentence = (date: string, days: number) =>
      `page.md: ${URL} was read on ${date}, ${days} days ago. Read it again for Other: history`
    expect(check('[no][a]', '2026-08-14')).toMatchObject({ defects: [], warnings: [] })
    expect(check('[no][a]', '2026-08-15')).toMatchObject({ defects: [], warnings: [sentence('2026-06-01', 75)] })
    expect(check('[no][a]', '2026-08-30')).toMatchObject({ defects: [], warnings: [sentence('2026-06-01', 90)] })
    expect(check('[no][a]', '2026-08-31')).toMatchObject({ defects: [sentence('2026-06-01', 91)], warnings: [] })
    expect(check('[no][a]', '2026-05-31').defects).toEqual([sentence('2026-06-01', -1)])
  })

  it.each([
    ['no', undefined, ['page.md: Other: history: no source', 'page.md: nothing refers to [a]']],
    [
      '[no](https://example.com), [no][a]',
      undefined,
      ['page.md: Other: history: an address without a day, write [text][id]'],
    ],
    ['[no][b], [no][a]', undefined, ['page.md: [b] is not defined with a day, for Other: history']],
    ['[no][a]', `[a]: ${URL}`, ['page.md: [a] is not defined with a day, for Other: history']],
    ['[no][a]', `[a]: ${URL} "read in May"`, [expect.stringContaining('Read it again for Other: history')]],
  ])('fails for a cell %s with the definition %s', (cell, definition, defects) => {
    expect(check(cell, '2026-06-02', definition).defects).toEqual(defects)
  })
})
