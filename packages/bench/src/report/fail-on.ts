import { UsageError } from '../exit-codes.js'
import type { Comparison } from './compare.js'

/** Finds the differences that a condition forbids; one sentence for each. */
export type FailOn = (comparison: Comparison) => string[]

const SYNTAX = /^([A-Za-z][\w.]*)\s*(?:(worse)|(<=|>=|<|>)\s*(\d+(?:\.\d+)?)x?)$/

const HOLDS: Readonly<Record<string, (ratio: number, limit: number) => boolean>> = {
  '<': (ratio, limit) => ratio < limit,
  '<=': (ratio, limit) => ratio <= limit,
  '>': (ratio, limit) => ratio > limit,
  '>=': (ratio, limit) => ratio >= limit,
}

/** How conditions are written, for `--help`. */
export const FAIL_ON_HELP = `Conditions for --fail-on:
  worse              any figure or verdict is worse, beyond noise
  missing            a row of the first result has no counterpart
  METRIC worse       that figure is worse in any row, beyond noise
  METRIC<0.9x        after/before of that figure is below 0.9 in any row (also <=, >, >=), noise or not`

/**
 * Reads `worse`, `missing`, `latencyMs.p99 worse`, `deliveriesPerServerCpuSecond<0.9x`.
 * @throws {UsageError} that names the fault and the correct form.
 */
export function parseFailOn(text: string, comparison: Pick<Comparison, 'columns'>): FailOn {
  const trimmed = text.trim()
  if (trimmed === 'missing') return ({ onlyBefore }) => onlyBefore.map((name) => `${name}: only in the first result`)
  if (trimmed === 'worse') return (found) => [...worseVerdicts(found), ...worseCells(found, () => true)]
  const [, metric = '', worse, operator = '', number = ''] = SYNTAX.exec(trimmed) ?? []
  if (metric === '') throw new UsageError(`--fail-on '${text}' is no condition.\n${FAIL_ON_HELP}`)
  if (!comparison.columns.some(({ key }) => key === metric)) {
    const known = comparison.columns.map(({ key }) => key).join(', ')
    throw new UsageError(`--fail-on '${text}': the results compare ${known}, not '${metric}'`)
  }
  if (worse !== undefined) return (found) => worseCells(found, (key) => key === metric)
  return (found) => ratiosThat(found, metric, (ratio) => HOLDS[operator]?.(ratio, Number(number)) ?? true)
}

function worseVerdicts({ rows }: Comparison): string[] {
  return rows.flatMap(({ name, before, after, change }) =>
    change === 'worse' ? [`${name}: '${before}' has become '${after}'`] : [],
  )
}

function worseCells({ rows }: Comparison, isMeant: (key: string) => boolean): string[] {
  return rows.flatMap(({ name, cells }) =>
    cells.flatMap(({ column, difference }) =>
      isMeant(column.key) && difference?.change === 'worse'
        ? [`${name}: ${column.key} is worse${difference.ratio === null ? '' : ` (${ratioText(difference.ratio)})`}`]
        : [],
    ),
  )
}

function ratiosThat({ rows }: Comparison, metric: string, holds: (ratio: number) => boolean): string[] {
  const findings: string[] = []
  let comparedCount = 0
  for (const { name, cells } of rows) {
    const cell = cells.find(({ column }) => column.key === metric)
    if (cell === undefined || cell.before === null) continue
    comparedCount += 1
    if (cell.difference === null) findings.push(`${name}: ${metric} was not measured in the second result`)
    else if (cell.difference.ratio === null) {
      // From zero to zero is no change. From zero to more has no ratio, and must not pass.
      if (cell.after !== 0) findings.push(`${name}: ${metric} has no ratio, it was 0 before`)
    } else if (holds(cell.difference.ratio)) findings.push(`${name}: ${metric} is ${ratioText(cell.difference.ratio)}`)
  }
  return comparedCount === 0 ? [`${metric} was measured in no row`] : findings
}

/** Three significant digits. */
export function ratioText(ratio: number): string {
  return `${Number(ratio.toPrecision(3))}x`
}
