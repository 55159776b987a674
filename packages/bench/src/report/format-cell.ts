import type { Cell, ColumnFormat, ResultColumn } from '../results/result.js'
import { formatCompact, formatCount, formatMs, formatPercent } from './format.js'

type NumberFormat = Exclude<ColumnFormat, 'text'>

const IN_TABLES: Readonly<Record<NumberFormat, (value: number) => string>> = {
  count: formatCount,
  rate: (value) => `${formatCompact(value)}/s`,
  number: formatCompact,
  ms: formatMs,
  seconds: (value) => `${value.toFixed(2)}s`,
  bytes: (value) => `${formatCompact(value)}B`,
  bytesPerSecond: (value) => `${formatCompact(value)}B/s`,
  ratio: (value) => `${Number(value.toPrecision(3))}x`,
  percent: formatPercent,
}

const ON_AXES: Readonly<Record<NumberFormat, (value: number) => string>> = {
  ...IN_TABLES,
  count: formatCompact,
  rate: formatCompact,
  ms: formatCompact,
  seconds: formatCompact,
  percent: (value) => `${formatCompact(value * 100)}%`,
}

/** A value of a table for people; a dash when it was not measured. */
export function formatCell(cell: Cell, format: ColumnFormat): string {
  if (cell === null) return '–'
  if (typeof cell === 'string') return cell
  return format === 'text' ? String(cell) : IN_TABLES[format](cell)
}

/** Writes the labels of an axis: short, without the unit, which is in {@link axisLabel}. */
export function axisFormat(format: ColumnFormat): (value: number) => string {
  return format === 'text' ? String : ON_AXES[format]
}

/** Formats whose labels carry their unit. */
const SPEAKING: readonly ColumnFormat[] = ['text', 'bytes', 'bytesPerSecond', 'ratio', 'percent']

/** Title of an axis, with the unit unless the title or the labels have it. */
export function axisLabel({ title, unit, format }: Pick<ResultColumn, 'title' | 'unit' | 'format'>): string {
  if (unit === '' || SPEAKING.includes(format)) return title
  if (unit !== '1/s') return title.endsWith(unit) ? title : `${title} (${unit})`
  return /\/|second/.test(title) ? title : `${title} per second`
}
