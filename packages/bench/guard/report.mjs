import { compareResults } from '../dist/report/compare.js'
import { formatCell } from '../dist/report/format-cell.js'
import { asRecord } from '../dist/report/read-record.js'
import { joinedColumns, paddedColumn } from '../dist/report/table-text.js'
import { cellOf, isSound } from '../dist/results/result.js'
import { combineRuns } from '../dist/trials/medians.js'

/** Medians, spreads and ratios of a guard, by the code of `benchmark.js compare`. */
export function guardReport(rows, { sides, leastChange }) {
  const reports = rows.map((row) => rowReport(row, leastChange))
  const lines = reports.flatMap((report) => report.lines)
  const worse = lines.filter(({ change }) => change === 'worse')
  const column = (title, key, isLeft = false) =>
    paddedColumn(
      title,
      lines.map((line) => line[key]),
      isLeft,
    )
  const table = joinedColumns([
    column('Row', 'name', true),
    column('Figure', 'key', true),
    column(sides[0].name, 'before'),
    column(sides[1].name, 'after'),
    column('Ratio', 'ratio'),
    column('Beside peers', 'peers', true),
    column('Change', 'change', true),
  ])
  return {
    text: [
      table,
      ...reports.flatMap(({ reasons }) => reasons),
      ...worse.map(({ name, key, ratio }) => `Worse beyond the noise: ${name}, ${key} ${ratio}`.trimEnd()),
      ...(worse.length === 0 ? ['Nothing is worse beyond the noise.'] : []),
    ].join('\n'),
    isWorse: worse.length > 0,
    unmeasured: reports.flatMap(({ unmeasured }) => unmeasured),
  }
}

/** The lines of one row, and in words why some of its figures are none. */
function rowReport({ name, figures, peers = [], where = {}, target, records }, leastChange) {
  const [before, after] = records.map((runs) => sideOf(runs, name, { target, where }))
  const [row] = compareResults(before, after, { leastChange }).rows
  const lines = []
  const unmeasured = []
  for (const key of figures) {
    const cell = row.cells.find(({ column }) => column.key === key)
    const [isBefore, isAfter] = [row.before, row.after].map((verdict) => isSound(verdict, key))
    if (!isBefore || !isAfter) {
      const texts = [isBefore, isAfter].map((isFigure) => (isFigure ? 'measured' : 'no figure'))
      lines.push({ name, key, before: texts[0], after: texts[1], ratio: '–', peers: '', change: 'no figure' })
    } else if (cell?.difference == null) {
      unmeasured.push(`${name}: ${key}`)
    } else {
      const { ratio, change } = cell.difference
      lines.push({
        name,
        key,
        before: cellText(before, cell.before, cell.column),
        after: cellText(after, cell.after, cell.column),
        ratio: ratio === null ? '–' : `${ratio.toFixed(3)}x`,
        peers: peers.map((peer) => besidePeer(after.combined(peer), key, cell.after, peer)).join(', '),
        change,
      })
    }
  }
  if (row.before !== row.after) {
    const { before: wasVerdict, after: isVerdict, change } = row
    lines.push({ name, key: 'verdict', before: wasVerdict, after: isVerdict, ratio: '', peers: '', change })
  }
  const reasons = lines.some(({ change }) => change === 'no figure')
    ? [before, after].flatMap(({ rows: [own] }, place) =>
        own.verdict === 'ok' ? [] : [`No figure: ${name}, ${SIDES[place]}: ${own.verdict}: ${own.verdictReason}`],
      )
    : []
  return { lines, reasons, unmeasured }
}

const SIDES = ['base', 'this']

/** All rounds of one side as a record of one row, with the worst verdict. `where` is what else tells the row. */
function sideOf(runs, name, { target, where }) {
  const all = runs.map((one) => {
    const record = asRecord(one, name)
    return {
      ...record,
      rows: record.rows.filter((row) => Object.entries(where).every(([key, value]) => row[key] === value)),
    }
  })
  const combined = (wanted) =>
    combineRuns(
      all.map(({ rows }) => rows.find((row) => row.target === wanted) ?? rows[0]),
      all[0].columns,
    )
  return { ...all[0], rows: [combined(target)], combined }
}

function besidePeer(row, key, own, peer) {
  const theirs = isSound(row.verdict, key) ? cellOf(row, key) : null
  return typeof theirs === 'number' && theirs > 0 ? `${(own / theirs).toPrecision(3)}x ${peer}` : `– ${peer}`
}

function cellText(record, value, { key, format }) {
  const { min, max } = record.rows[0].spread[key] ?? { min: value, max: value }
  return `${formatCell(value, format)} (${formatCell(min, format)}–${formatCell(max, format)})`
}
