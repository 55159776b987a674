import type { CellComparison, Comparison, RowComparison } from './compare.js'
import { ratioText } from './fail-on.js'
import { formatCell } from './format-cell.js'
import type { Difference } from './noise-band.js'
import { joinedColumns, paddedColumn } from './table-text.js'

interface Line {
  readonly row: RowComparison
  readonly cell: CellComparison
}

/**
 * A comparison for terminals: the better and worse figures, then the count of others.
 * @param hasAll Whether to list what is within noise too.
 */
export function compareText(comparison: Comparison, hasAll: boolean): string {
  const { rows, onlyBefore, onlyAfter, warnings } = comparison
  const lines = rows.flatMap((row) => row.cells.map((cell): Line => ({ row, cell })))
  const counts = { better: 0, worse: 0, 'within noise': 0 }
  for (const { cell } of lines) if (cell.difference !== null) counts[cell.difference.change] += 1
  const shown = lines.filter(
    ({ cell: { difference } }) => difference !== null && (hasAll || difference.change !== 'within noise'),
  )
  const verdicts = rows
    .filter(({ before, after }) => before !== 'ok' || after !== 'ok')
    .map(({ name, before, after }) => `  ${name}: ${before === after ? before : `${before} -> ${after}`}`)
  return [
    ...sourceLines(comparison),
    ...warnings.map((warning) => `Warning: ${warning}`),
    '',
    ...(shown.length === 0 ? [] : [tableOf(shown), '']),
    ...(verdicts.length === 0 ? [] : ['Verdicts other than ok:', ...verdicts, '']),
    ...onlyBefore.map((name) => `Only in ${comparison.sides[0]}: ${name}`),
    ...onlyAfter.map((name) => `Only in ${comparison.sides[1]}: ${name}`),
    `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}: ${counts.better} figures better, ${counts.worse} worse, ${counts['within noise']} within noise`,
    '',
  ].join('\n')
}

function sourceLines({ before, after, sides }: Comparison): string[] {
  const describe = ({ machine, command }: Comparison['before']) =>
    `${machine.startedAt}, ${machine.gitCommit?.slice(0, 10) ?? 'no commit'}: ${command}`
  return before === after
    ? [`Within ${describe(before)}`, `Before: ${sides[0]}`, `After:  ${sides[1]}`]
    : [`Before: ${sides[0]}, ${describe(before)}`, `After:  ${sides[1]}, ${describe(after)}`]
}

function tableOf(lines: readonly Line[]): string {
  const column = (title: string, textOf: (line: Line) => string, isLeft = false) =>
    paddedColumn(title, lines.map(textOf), isLeft)
  return joinedColumns([
    column('Row', ({ row }) => row.name, true),
    column('Figure', ({ cell }) => cell.column.key, true),
    column('Before', ({ cell }) => formatCell(cell.before, cell.column.format)),
    column('After', ({ cell }) => formatCell(cell.after, cell.column.format)),
    column('Ratio', ({ cell }) => (cell.difference?.ratio == null ? '–' : ratioText(cell.difference.ratio))),
    column('Band', ({ cell }) => bandText(cell.difference)),
    column('Change', ({ cell }) => cell.difference?.change ?? '', true),
  ])
}

/** The noise band of the ratio. */
export function bandText(difference: Difference | null): string {
  if (difference === null || difference.lowRatio === null || difference.highRatio === null) return '–'
  return `${ratioText(difference.lowRatio)} to ${ratioText(difference.highRatio)}`
}
