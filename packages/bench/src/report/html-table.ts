import { cellOf, type ResultColumn, type ResultRow, type RowVerdict } from '../results/result.js'
import { formatCell } from './format-cell.js'
import { escapeHtml } from './html-escape.js'
import { speakOf } from './plot-plan.js'

/** The content of a table. */
export interface HtmlTable {
  readonly columns: readonly ResultColumn[]
  readonly identity: readonly string[]
  readonly rows: readonly ResultRow[]
}

/** CSS class of a verdict. */
export function verdictClass(verdict: RowVerdict): string {
  if (verdict === 'ok') return 'good'
  return verdict === 'generator saturated' ? 'doubtful' : 'bad'
}

/**
 * The rows as a table that scrolls sideways with its first column in place. The targets stand below each other at each
 * tier, the best in bold, with the spread of the repeats under each figure. Identity columns with a single value and
 * columns without a measurement are left out.
 */
export function htmlTable({ columns, identity, rows }: HtmlTable): string {
  const varying = columns.filter(
    ({ key }) => identity.includes(key) && new Set(rows.map((row) => cellOf(row, key))).size > 1,
  )
  const tiers = varying.filter(({ key }) => key !== 'target')
  const hasTargets = tiers.length < varying.length
  const shown = columns.filter(
    ({ key }) =>
      !identity.includes(key) &&
      key !== 'verdict' &&
      key !== 'verdictReason' &&
      rows.some((row) => cellOf(row, key) !== null),
  )
  const tierOf = (row: ResultRow) => tiers.map((column) => speakOf(cellOf(row, column.key), column)).join(', ')
  const groups = new Map<string, ResultRow[]>()
  for (const row of rows) groups.set(tierOf(row), [...(groups.get(tierOf(row)) ?? []), row])

  const head = shown.map(
    ({ title, format }) => `<th scope="col"${format === 'text' ? ' class="text"' : ''}>${escapeHtml(title)}</th>`,
  )
  const bodies = [...groups].map(([tier, own]) => {
    const lines = own.map((row) => {
      const name = hasTargets || tier === '' ? row.target : tier
      const cells = shown.map((column) => cellHtml(row, column, own))
      return `<tr><th scope="row">${escapeHtml(name)}</th>${cells.join('')}${verdictHtml(row)}</tr>`
    })
    const title =
      hasTargets && tier !== ''
        ? `<tr><th class="tier text" scope="rowgroup" colspan="${shown.length + 2}"><span>${escapeHtml(tier)}</span></th></tr>`
        : ''
    return `<tbody>${[title, ...lines].join('\n')}</tbody>`
  })
  return (
    `<div class="wide"><table><thead><tr><th scope="col" class="text">${hasTargets ? 'Target' : ''}</th>` +
    `${head.join('')}<th scope="col" class="text">Verdict</th></tr></thead>${bodies.join('')}</table></div>`
  )
}

function cellHtml(row: ResultRow, column: ResultColumn, rivals: readonly ResultRow[]): string {
  const { key, format } = column
  const classes = [...(format === 'text' ? ['text'] : []), ...(isBest(row, column, rivals) ? ['best'] : [])].join(' ')
  const content = `${escapeHtml(formatCell(cellOf(row, key), format))}${spreadHtml(row, key)}`
  return `<td${classes === '' ? '' : ` class="${classes}"`}>${content}</td>`
}

/** Half the distance between the extremes, relative to the median. */
function spreadHtml(row: ResultRow, key: string): string {
  const spread = row.spread[key]
  const median = cellOf(row, key)
  if (spread === undefined || spread.max === spread.min || typeof median !== 'number' || median === 0) return ''
  const percent = ((spread.max - spread.min) / 2 / Math.abs(median)) * 100
  return `<small>±${Number(percent.toPrecision(2))}%</small>`
}

function verdictHtml({ verdict, verdictReason }: ResultRow): string {
  const reason = verdictReason === null ? '' : `<small>${escapeHtml(verdictReason)}</small>`
  return `<td class="text why ${verdictClass(verdict)}">${escapeHtml(verdict)}${reason}</td>`
}

/** @param rivals The rows that differ in the target alone, itself among them. */
function isBest(row: ResultRow, { key, better }: ResultColumn, rivals: readonly ResultRow[]): boolean {
  const own = cellOf(row, key)
  if (better === undefined || typeof own !== 'number' || row.verdict === 'failed') return false
  const others = rivals.map((rival) => cellOf(rival, key)).filter((cell) => typeof cell === 'number')
  // If all are equal, none is best.
  if (new Set(others).size < 2) return false
  return own === (better === 'higher' ? Math.max(...others) : Math.min(...others))
}
