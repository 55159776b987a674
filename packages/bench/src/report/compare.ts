import { UsageError } from '../exit-codes.js'
import { cellOf, type ResultColumn, type ResultRecord, type ResultRow, type RowVerdict } from '../results/result.js'
import { compareEnvironments } from './compare-environments.js'
import { type Change, type Difference, judgeDifference, type Measurement } from './noise-band.js'
import { fullTitle, speakOf } from './plot-plan.js'

export interface CellComparison {
  readonly column: ResultColumn
  /** `null`: not measured. */
  readonly before: number | null
  readonly after: number | null
  /** `null` unless both were measured. */
  readonly difference: Difference | null
}

export interface RowComparison {
  readonly name: string
  readonly before: RowVerdict
  readonly after: RowVerdict
  /** Compares the verdicts: lost messages are worse than none lost, whatever the figures. */
  readonly change: Change
  readonly cells: readonly CellComparison[]
}

export interface Comparison {
  readonly before: ResultRecord
  readonly after: ResultRecord
  /** Names of the two sides: the targets, or first and second result. */
  readonly sides: readonly [before: string, after: string]
  /** The columns that have a better direction. */
  readonly columns: readonly ResultColumn[]
  readonly rows: readonly RowComparison[]
  /** Names of rows without a counterpart. */
  readonly onlyBefore: readonly string[]
  readonly onlyAfter: readonly string[]
  /** Why the results may not be comparable, one sentence each. */
  readonly warnings: readonly string[]
}

export interface CompareOptions {
  /** Relative; see {@link judgeDifference}. */
  readonly leastChange: number
  /** Compares one target's rows of the first result with another's of the second, instead of like with like. */
  readonly targets?: readonly [before: string, after: string]
}

/**
 * Matches the rows of two results by their identity and judges every figure that has a better direction.
 * @throws {UsageError} when the results have no row in common.
 */
export function compareResults(before: ResultRecord, after: ResultRecord, options: CompareOptions): Comparison {
  const { targets, leastChange } = options
  if (before.scenario !== after.scenario) {
    throw new UsageError(`these are results of different scenarios: '${before.scenario}' and '${after.scenario}'`)
  }
  const keys = before.identity.filter((key) => after.identity.includes(key) && !(targets && key === 'target'))
  const beforeRows = rowsByKey(before, keys, targets?.[0])
  const afterRows = rowsByKey(after, keys, targets?.[1])
  const shown = namingColumns(before, keys, [...beforeRows.values(), ...afterRows.values()])
  const nameOf = (row: ResultRow) => shown.map((column) => speakOf(cellOf(row, column.key), column)).join(', ')
  const columns = after.columns
    .filter(
      ({ key, better, format }) =>
        better !== undefined && format !== 'text' && before.columns.some((column) => column.key === key),
    )
    .map((column) => ({ ...column, title: fullTitle(column) }))
  const rows = [...beforeRows].flatMap(([key, row]): RowComparison[] => {
    const counterpart = afterRows.get(key)
    return counterpart === undefined
      ? []
      : [{ name: nameOf(row), ...compareRows(row, counterpart, columns, leastChange) }]
  })
  const onlyBefore = [...beforeRows].filter(([key]) => !afterRows.has(key)).map(([, row]) => nameOf(row))
  const onlyAfter = [...afterRows].filter(([key]) => !beforeRows.has(key)).map(([, row]) => nameOf(row))
  if (rows.length === 0) {
    const text = (names: readonly string[]) => (names.length === 0 ? 'no rows' : names.slice(0, 3).join('; '))
    throw new UsageError(
      `the results have no row in common: the first has ${text(onlyBefore)}, the second has ${text(onlyAfter)}`,
    )
  }
  const sides = targets ?? (['first', 'second'] as const)
  return { before, after, sides, columns, rows, onlyBefore, onlyAfter, warnings: compareEnvironments(before, after) }
}

function rowsByKey(record: ResultRecord, keys: readonly string[], target: string | undefined): Map<string, ResultRow> {
  const rows = new Map<string, ResultRow>()
  for (const row of record.rows) {
    if (target !== undefined && row.target !== target) continue
    const key = JSON.stringify(keys.map((name) => cellOf(row, name)))
    if (rows.has(key)) throw new UsageError(`a result has two rows that are both ${key} (${keys.join(', ')})`)
    rows.set(key, row)
  }
  return rows
}

/** The values that distinguish a row from the others; a single row gets a generic name. */
function namingColumns(
  { columns }: ResultRecord,
  keys: readonly string[],
  rows: readonly ResultRow[],
): readonly ResultColumn[] {
  const named = columns.filter(({ key }) => keys.includes(key))
  const varying = named.filter(({ key }) => new Set(rows.map((row) => cellOf(row, key))).size > 1)
  if (varying.length > 0) return varying
  const first = ['target', 'subscribers'].find((key) => keys.includes(key))
  return named.filter(({ key }) => key === first)
}

function compareRows(
  before: ResultRow,
  after: ResultRow,
  columns: readonly ResultColumn[],
  leastChange: number,
): Omit<RowComparison, 'name'> {
  const cells = columns.map((column): CellComparison => {
    const a = measurementOf(before, column.key)
    const b = measurementOf(after, column.key)
    return {
      column,
      before: a?.median ?? null,
      after: b?.median ?? null,
      difference:
        a === null || b === null || column.better === undefined
          ? null
          : judgeDifference(a, b, column.better, leastChange),
    }
  })
  const change = SEVERITY[after.verdict] - SEVERITY[before.verdict]
  return {
    before: before.verdict,
    after: after.verdict,
    change: change === 0 ? 'within noise' : change > 0 ? 'worse' : 'better',
    cells,
  }
}

/** A saturated machine or generator says nothing about the server. */
const SEVERITY: Readonly<Record<RowVerdict, number>> = {
  ok: 0,
  'machine saturated': 0,
  'generator saturated': 0,
  'server saturated': 1,
  'broker saturated': 1,
  'publishes failed': 2,
  'lost messages': 2,
  failed: 3,
}

function measurementOf(row: ResultRow, key: string): Measurement | null {
  const median = cellOf(row, key)
  if (typeof median !== 'number' || row.verdict === 'failed') return null
  return { median, spread: row.spread[key], repeatCount: row.repeatCount }
}
