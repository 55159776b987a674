import { column } from '../results/columns.js'
import { cellOf, type ResultRecord, type ResultRow } from '../results/result.js'
import { environmentFacts, machineLine } from './environment.js'
import { formatCell } from './format-cell.js'
import { groupBy } from './group-by.js'
import { figuresOf, verdictOf } from './headline.js'
import { type PageSection, type PageTable, pageText } from './page.js'
import { speakOf } from './plot-plan.js'
import { recordPlots } from './record-plots.js'
import { toneOf } from './tone.js'

/** A result as one page: verdict, figures, plots, outcome, table, and the command and machine to reproduce it. */
export function recordPage(record: ResultRecord): string {
  const plots = recordPlots(record)
  return pageText({
    title: `WebMQ benchmark: ${record.scenario}`,
    subtitle: `${record.machine.startedAt} · ${machineLine(record)}`,
    verdict: verdictOf(record),
    figures: figuresOf(record),
    sections: [
      ...(plots.length === 0 ? [] : [{ title: 'Plots', plots }]),
      outcomeSection(record),
      tableSection(record),
      madeSection('How it was made', record),
    ],
  })
}

/** The command, the machine, the versions and every setting. */
export function madeSection(title: string, record: ResultRecord): PageSection {
  const settings = Object.entries(record.config).map(([label, value]) => ({
    label,
    value: Array.isArray(value) ? value.join(', ') : typeof value === 'string' ? value : JSON.stringify(value),
  }))
  const facts = environmentFacts(record).filter(({ key }) => key !== 'command')
  return { title, command: record.command, facts: [...facts, ...settings] }
}

/** How many rows hold, which do not and why, the assertions, the notes. */
function outcomeSection({ rows, columns, identity, assertions, notes }: ResultRecord): PageSection {
  const verdicts = [...new Set(rows.map(({ verdict }) => verdict))]
  const counts = verdicts.map((verdict) => `${rows.filter((row) => row.verdict === verdict).length} ${verdict}`)
  const named = columns.filter(
    ({ key }) => identity.includes(key) && new Set(rows.map((row) => cellOf(row, key))).size > 1,
  )
  const nameOf = (row: ResultRow) => named.map((column) => speakOf(cellOf(row, column.key), column)).join(', ')
  const problems = groupBy(
    rows.filter(({ verdict }) => verdict !== 'ok'),
    ({ verdict, verdictReason }) => `${verdict}${verdictReason === null ? '' : `: ${verdictReason}`}`,
  )
  return {
    title: 'Outcome',
    text: `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}: ${counts.join(', ')}`,
    list: [
      ...[...problems].map(([text, own]) => {
        const names = own.map((row) => nameOf(row) || row.target)
        return { text, small: names.join('; '), tone: toneOf(own[0]?.verdict ?? 'ok') }
      }),
      ...assertions.map(({ text, isMet, actual }) => ({
        text: `${isMet ? 'holds' : 'fails'}: ${text}`,
        small: String(actual ?? 'nothing measured'),
        tone: isMet ? ('good' as const) : ('bad' as const),
      })),
      ...notes,
    ],
  }
}

function tableSection({ columns, identity, rows, runs }: ResultRecord): PageSection {
  const medians = tableOf({ columns, identity, rows })
  if (runs.length <= rows.length) return { title: 'Table', tables: [medians] }
  const repeat = column('repeat', 'Repeat', 'count')
  const every = tableOf({ columns: [repeat, ...columns.filter(({ key }) => key !== 'repeat')], identity, rows: runs })
  return {
    title: 'Table',
    text: 'Medians of the repeats; below each, half the distance between smallest and largest. The best target is bold.',
    tables: [medians, { ...every, summary: `Every single measurement (${runs.length})` }],
  }
}

/** Identity columns with one value and columns without a measurement are left out. */
function tableOf({ columns, identity, rows }: Pick<ResultRecord, 'columns' | 'identity' | 'rows'>): PageTable {
  const shown = columns.filter(({ key }) => {
    if (key === 'target' || key.startsWith('verdict')) return false
    const cells = new Set(rows.map((row) => cellOf(row, key)))
    return identity.includes(key) ? cells.size > 1 : cells.size > 1 || !cells.has(null)
  })
  const rivalsOf = (row: ResultRow) =>
    rows.filter((other) => identity.every((key) => key === 'target' || cellOf(other, key) === cellOf(row, key)))
  return {
    head: ['Target', 'Verdict', ...shown.map(({ title }) => title)],
    rows: rows.map((row) => [
      row.target,
      { text: row.verdict, small: row.verdictReason ?? '', tone: toneOf(row.verdict) },
      ...shown.map(({ key, format, better }) => {
        const cell = cellOf(row, key)
        const text = formatCell(cell, format)
        const isBest = better !== undefined && isBestOf(cell, better, key, rivalsOf(row))
        return { text, ...(isBest ? { tone: 'best' as const } : {}), small: spreadText(row, key) }
      }),
    ]),
  }
}

/** Half the distance between the extremes, relative to the median. */
function spreadText(row: ResultRow, key: string): string {
  const spread = row.spread[key]
  const median = cellOf(row, key)
  if (spread === undefined || spread.max === spread.min || typeof median !== 'number' || median === 0) return ''
  return `±${Number((((spread.max - spread.min) / 2 / Math.abs(median)) * 100).toPrecision(2))}%`
}

function isBestOf(own: unknown, better: 'higher' | 'lower', key: string, rivals: readonly ResultRow[]): boolean {
  const others = rivals.map((rival) => cellOf(rival, key)).filter((cell) => typeof cell === 'number')
  return new Set(others).size > 1 && own === (better === 'higher' ? Math.max(...others) : Math.min(...others))
}
