import { cellOf, type ResultRecord } from '../results/result.js'
import { environmentFacts } from './environment.js'

/** RFC 4180 §2.1 */
const LINE_END = '\r\n'

/**
 * The rows as CSV after RFC 4180: one line per row of medians, plain numbers in the units of the columns, empty where
 * nothing was measured. The smallest and largest value of the repeats follow each figure that has them. Every line
 * repeats its environment, so that you can combine lines of several files.
 */
export function csvText(record: ResultRecord): string {
  const { columns, identity, rows } = record
  const hasSpread = (key: string) => !identity.includes(key) && rows.some((row) => row.spread[key] !== undefined)
  const environment = environmentFacts(record)
  const keys = new Set(columns.map(({ key }) => key))
  const extras = ['verdict', 'verdictReason', 'repeatCount'].filter((key) => !keys.has(key))
  const head = [
    'scenario',
    ...columns.flatMap(({ key }) => (hasSpread(key) ? [key, `${key}.min`, `${key}.max`] : [key])),
    ...extras,
    ...environment.map(({ key }) => key),
  ]
  const lines = rows.map((row) => [
    record.scenario,
    ...columns.flatMap(({ key }) => {
      const spread = row.spread[key]
      return hasSpread(key) ? [cellOf(row, key), spread?.min ?? null, spread?.max ?? null] : [cellOf(row, key)]
    }),
    ...extras.map((key) => cellOf(row, key)),
    ...environment.map(({ value }) => value),
  ])
  return [head, ...lines].map((line) => line.map(field).join(',') + LINE_END).join('')
}

function field(value: string | number | null): string {
  if (value === null) return ''
  const text = String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
