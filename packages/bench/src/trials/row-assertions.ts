import { UsageError } from '../exit-codes.js'
import { type ColumnFormat, cellOf, type ResultColumn } from '../results/result.js'
import type { AssertionResult } from '../scenario.js'

export interface RowAssertion {
  /** As it was written. */
  readonly text: string
  /** Rows of this target only. */
  readonly target?: string
  /** Divides the target's figure by that of this target, in the row that is otherwise the same. */
  readonly divisor?: string
  readonly column: ResultColumn
  /** Rows with these values only, by column key. */
  readonly where: ReadonlyMap<string, string>
  readonly operator: Operator
  /** In the column's own unit; a word for a column of text. */
  readonly limit: number | string
}

const SYNTAX =
  /^\s*(?:([a-z][\w:+-]*)(?:\s*\/\s*([a-z][\w:+-]*))?\s+)?([A-Za-z][\w.]*)(?:@([\w.=,:+-]+))?\s*(==|=|!=|<=|>=|<|>)\s*(.+?)\s*$/
const NUMBER = /^(\d+(?:\.\d+)?)\s*([A-Za-z%]*)$/

const COMPARE = {
  '=': (actual: number, limit: number) => actual === limit,
  '!=': (actual: number, limit: number) => actual !== limit,
  '<': (actual: number, limit: number) => actual < limit,
  '<=': (actual: number, limit: number) => actual <= limit,
  '>': (actual: number, limit: number) => actual > limit,
  '>=': (actual: number, limit: number) => actual >= limit,
} as const
type Operator = keyof typeof COMPARE

type Units = Readonly<Record<string, number>>
const NO_UNIT: Units = { '': 1 }
const BYTES: Units = { ...NO_UNIT, B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }
/** How many of a column's unit one of the written unit is; absent: no unit is written. */
const UNITS: Partial<Readonly<Record<ColumnFormat, Units>>> = {
  ms: { '': 1, us: 0.001, ms: 1, s: 1_000 },
  seconds: { '': 1, us: 0.000_001, ms: 0.001, s: 1 },
  bytes: BYTES,
  bytesPerSecond: BYTES,
  percent: { '': 1, '%': 0.01 },
}

export const ROW_ASSERTION_FORM = '[TARGET[/TARGET]] COLUMN[@TIER[,COLUMN=VALUE]] OPERATOR NUMBER[UNIT]'

/**
 * Reads `gapCount=0`, `verdict=ok`, `webmq-native latencyMs.p99@1000 < 25ms`,
 * `webmq-native/uws deliveriesPerServerCpuSecond@1000 >= 5`, `deliveriesPerSecond@1000,payloadBytes=64 > 1000000`.
 * @param targets Those of the run.
 * @throws {UsageError} that names the fault and the correct form.
 */
export function parseRowAssertion(
  text: string,
  columns: readonly ResultColumn[],
  targets: readonly string[],
): RowAssertion {
  const [, target, divisor, key, selector, operator, value] = SYNTAX.exec(text) ?? []
  const wrong = (reason: string) => new UsageError(`--assert '${text}': ${reason}`)
  if (key === undefined || value === undefined) {
    throw wrong(
      `not of the form ${ROW_ASSERTION_FORM}, for example 'gapCount=0' or 'webmq-native/uws deliveriesPerSecond@1000 >= 2'`,
    )
  }
  for (const name of [target, divisor]) {
    if (name !== undefined && !targets.includes(name))
      throw wrong(`'${name}' is not measured; ${targets.join(', ')} are`)
  }
  const column = columns.find((known) => known.key === key)
  if (column === undefined)
    throw wrong(`there is no column '${key}'; there are ${columns.map((known) => known.key).join(', ')}`)
  const where = new Map<string, string>()
  for (const part of selector?.split(',') ?? []) {
    const [name = '', wanted] = part.includes('=') ? part.split('=') : ['subscribers', part]
    if (!columns.some((known) => known.key === name)) throw wrong(`there is no column '${name}'`)
    where.set(name, wanted ?? '')
  }
  return {
    text: text.trim(),
    ...(target === undefined ? {} : { target }),
    ...(divisor === undefined ? {} : { divisor }),
    column,
    where,
    operator: (operator === '==' ? '=' : operator) as Operator,
    limit: limitOf(value, column, divisor !== undefined, operator ?? '', wrong),
  }
}

export function checkRowAssertions(
  assertions: readonly RowAssertion[],
  rows: readonly object[],
  identity: readonly string[],
): AssertionResult[] {
  return assertions.map((assertion) => {
    const actuals = rows.filter((row) => isAbout(assertion, row)).map((row) => actualOf(assertion, row, rows, identity))
    const failing = actuals.find((actual) => !isMet(assertion, actual))
    return {
      text: assertion.text,
      isMet: actuals.length > 0 && failing === undefined,
      actual: failing !== undefined ? failing : closest(assertion, actuals),
    }
  })
}

function limitOf(
  value: string,
  column: ResultColumn,
  isRatio: boolean,
  operator: string,
  wrong: (reason: string) => UsageError,
): number | string {
  if (column.format === 'text') {
    if (isRatio || !['=', '==', '!='].includes(operator))
      throw wrong(`'${column.key}' is text: it is = or != to a word`)
    return value
  }
  const [, number, unit = ''] = NUMBER.exec(value) ?? []
  if (number === undefined) throw wrong(`'${value}' is not a number`)
  const units = (isRatio ? undefined : UNITS[column.format]) ?? NO_UNIT
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined
  if (factor === undefined) {
    const known = Object.keys(units).filter((name) => name !== '')
    const hint = known.length === 0 ? 'takes no unit' : `takes ${known.join(', ')}`
    throw wrong(`${isRatio ? 'a ratio' : `'${column.key}'`} ${hint}, not '${unit}'`)
  }
  return Number(number) * factor
}

function isAbout({ target, where }: RowAssertion, row: object): boolean {
  if (target !== undefined && cellOf(row, 'target') !== target) return false
  return [...where].every(([key, wanted]) => String(cellOf(row, key)) === wanted)
}

function actualOf(
  { column, divisor }: RowAssertion,
  row: object,
  rows: readonly object[],
  identity: readonly string[],
): number | string | null {
  const value = cellOf(row, column.key)
  if (divisor === undefined) return value
  const keys = identity.filter((key) => key !== 'target')
  const other = rows.find(
    (candidate) =>
      cellOf(candidate, 'target') === divisor && keys.every((key) => cellOf(candidate, key) === cellOf(row, key)),
  )
  const base = other === undefined ? null : cellOf(other, column.key)
  return typeof value === 'number' && typeof base === 'number' && base !== 0 ? value / base : null
}

function isMet({ operator, limit }: RowAssertion, actual: number | string | null): boolean {
  if (typeof actual === 'number' && typeof limit === 'number') return COMPARE[operator](actual, limit)
  if (typeof actual === 'string' && typeof limit === 'string') return (operator === '=') === (actual === limit)
  return false
}

/** Of several values that meet the condition, the one nearest to failing it. */
function closest({ operator }: RowAssertion, actuals: readonly (number | string | null)[]): number | string | null {
  const numbers = actuals.filter((actual) => typeof actual === 'number')
  if (numbers.length === 0) return actuals[0] ?? null
  return operator === '>' || operator === '>=' ? Math.min(...numbers) : Math.max(...numbers)
}
