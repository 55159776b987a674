import type { ResultColumn, ResultRecord } from '../results/result.js'
import type { CellComparison, Comparison, RowComparison } from './compare.js'
import { bandText } from './compare-text.js'
import { environmentFacts, machineLine } from './environment.js'
import { ratioText } from './fail-on.js'
import { formatCell } from './format-cell.js'
import { escapeHtml } from './html-escape.js'
import { htmlPage } from './html-page.js'
import { verdictClass } from './html-table.js'
import type { Change } from './noise-band.js'
import { intervalPlotSvg } from './svg-intervals.js'

const CLASS_OF: Readonly<Record<Change, string>> = { better: 'good', worse: 'bad', 'within noise': 'soft' }

/** A comparison as one self-contained page: ratios with their noise band, and every figure. */
export function compareHtml(comparison: Comparison): string {
  const { before, after, sides, columns } = comparison
  const [first, second] = sides.map(escapeHtml)
  const sources = before === after ? source('Both', after) : `${source('Before', before)}${source('After', after)}`
  const figures = columns.map((column) => figureOf(comparison, column)).filter((figure) => figure !== '')
  return htmlPage(`WebMQ benchmark compared: ${after.scenario}`, [
    `<header><h1>WebMQ benchmark compared: ${escapeHtml(after.scenario)}</h1>` +
      `<p class="soft">${escapeHtml(machineLine(after))}</p>` +
      '<nav><a href="#outcome">Outcome</a> <a href="#plots">Plots</a> <a href="#table">Table</a> <a href="#made">How it was made</a></nav></header>',
    '<main>',
    outcome(comparison),
    `<section id="plots"><h2>Ratios, ${second} by ${first}</h2><p class="soft">A line is where the ratio may lie by chance.</p>` +
      `<div class="plots">${figures.join('\n')}</div></section>`,
    `<section id="table"><h2>Table</h2>${table(comparison)}</section>`,
    `<section id="made"><h2>How it was made</h2>${sources}</section>`,
    '</main>',
  ])
}

function outcome({ rows, sides, onlyBefore, onlyAfter, warnings }: Comparison): string {
  const counts = { better: 0, worse: 0, 'within noise': 0 }
  for (const { cells } of rows) for (const { difference } of cells) if (difference) counts[difference.change] += 1
  const summary = Object.entries(counts).map(
    ([change, count]) => `<span class="${CLASS_OF[change as Change]}">${count} ${change}</span>`,
  )
  const items = [
    ...warnings.map((warning) => `<b class="doubtful">Warning</b> ${escapeHtml(warning)}`),
    ...onlyBefore.map((name) => `Only in ${escapeHtml(sides[0])}: ${escapeHtml(name)}`),
    ...onlyAfter.map((name) => `Only in ${escapeHtml(sides[1])}: ${escapeHtml(name)}`),
  ]
  const list = items.length === 0 ? '' : `<ul>${items.map((item) => `<li>${item}</li>`).join('')}</ul>`
  return `<section id="outcome"><h2>Outcome</h2><p>Figures of ${rows.length} ${rows.length === 1 ? 'row' : 'rows'}, ${escapeHtml(sides[1])} against ${escapeHtml(sides[0])}: ${summary.join(', ')}</p>${list}</section>`
}

function figureOf({ rows }: Comparison, column: ResultColumn): string {
  const intervals = rows.flatMap(({ shortName, cells }) => {
    const difference = cells.find((cell) => cell.column.key === column.key)?.difference
    if (difference == null || difference.ratio === null || difference.ratio === 0) return []
    const { ratio, lowRatio: low, highRatio: high, change } = difference
    return [{ name: shortName, ratio, low, high, className: CLASS_OF[change] }]
  })
  if (intervals.length === 0) return ''
  const direction = column.better === 'higher' ? 'more' : 'less'
  const svg = intervalPlotSvg({ title: `Ratio of ${column.title}`, intervals })
  return `<figure><figcaption>${escapeHtml(column.title)} <small>${direction} is better</small></figcaption>${svg}</figure>`
}

function table({ rows, columns }: Comparison): string {
  const measured = columns.filter(({ key }) =>
    rows.some(({ cells }) => cells.some((cell) => cell.column.key === key && cell.difference !== null)),
  )
  const head = measured.map(({ title }) => `<th scope="col">${escapeHtml(title)}</th>`)
  const lines = rows.map((row) => {
    const cells = measured.map(({ key }) => cellHtml(row.cells.find((cell) => cell.column.key === key)))
    return `<tr><th scope="row">${escapeHtml(row.name)}</th>${cells.join('')}${verdictHtml(row)}</tr>`
  })
  return (
    `<div class="wide"><table><thead><tr><th scope="col" class="text">Row</th>${head.join('')}` +
    `<th scope="col" class="text">Verdict</th></tr></thead><tbody>${lines.join('\n')}</tbody></table></div>`
  )
}

function cellHtml(cell: CellComparison | undefined): string {
  if (cell === undefined || (cell.before === null && cell.after === null)) return '<td>–</td>'
  const { column, before, after, difference } = cell
  const values = `${formatCell(before, column.format)} → ${formatCell(after, column.format)}`
  const ratio = difference?.ratio == null ? '–' : ratioText(difference.ratio)
  const isTold = difference !== null && difference.change !== 'within noise'
  return (
    `<td><span class="${difference === null ? 'soft' : CLASS_OF[difference.change]}${isTold ? ' best' : ''}">${ratio}</span>` +
    `<small>${escapeHtml(values)}</small><small>${escapeHtml(bandText(difference))}</small></td>`
  )
}

function verdictHtml({ before, after }: RowComparison): string {
  const text = (verdict: typeof before) => `<span class="${verdictClass(verdict)}">${escapeHtml(verdict)}</span>`
  return `<td class="text why">${before === after ? text(after) : `${text(before)} → ${text(after)}`}</td>`
}

function source(title: string, record: ResultRecord): string {
  const facts = environmentFacts(record)
    .filter(({ key }) => key !== 'command')
    .map(({ label, value }) => `<div><dt>${escapeHtml(label)}</dt><dd>${escapeHtml(value)}</dd></div>`)
  return (
    `<h3>${title}</h3><div class="card"><pre>${escapeHtml(record.command)}</pre></div>` +
    `<p></p><dl>${facts.join('')}</dl>`
  )
}
