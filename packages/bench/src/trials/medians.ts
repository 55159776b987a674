import { worstOf } from '../results/judgement.js'
import { cellOf, type ResultColumn, type ResultRow, type Spread } from '../results/result.js'

/** The median: the mean of the two middle values of an even number; `null` of none. */
export function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[sorted.length >> 1]
  if (upper === undefined) return null
  if (sorted.length % 2 === 1) return upper
  return ((sorted[(sorted.length >> 1) - 1] ?? upper) + upper) / 2
}

/** Smallest and largest; `null` of none. */
export function spreadOf(values: readonly number[]): Spread | null {
  return values.length === 0 ? null : { min: Math.min(...values), max: Math.max(...values) }
}

/**
 * One row for all repeats of a target under one condition: medians, unless the column names another, and the worst
 * verdict. Failed repeats have no figures, so they only affect the verdict.
 * @param runs At least one.
 */
export function combineRuns(runs: readonly ResultRow[], columns: readonly ResultColumn[]): ResultRow {
  const [first] = runs
  if (first === undefined) throw new RangeError('there is nothing to combine')
  const measured = runs.filter(({ verdict }) => verdict !== 'failed')
  const figures = combine(measured.length > 0 ? measured : [first], '', columns) as ResultRow
  return {
    ...figures,
    ...worstOf(runs),
    repeatCount: runs.length,
    spread: spreads(measured, columns),
  }
}

function spreads(runs: readonly ResultRow[], columns: readonly ResultColumn[]): Record<string, Spread> {
  const entries = columns.flatMap(({ key }): [string, Spread][] => {
    const spread = spreadOf(runs.map((row) => cellOf(row, key)).filter((cell) => typeof cell === 'number'))
    return spread === null ? [] : [[key, spread]]
  })
  return Object.fromEntries(entries)
}

/** Combines numbers, and objects member by member. Of other values the first stands for all. */
function combine(values: readonly unknown[], path: string, columns: readonly ResultColumn[]): unknown {
  const present = values.filter((value) => value !== null && value !== undefined)
  const [first] = present
  if (first === undefined) return null
  if (typeof first === 'number') return combineNumbers(present as number[], path, columns)
  if (typeof first !== 'object' || Array.isArray(first)) return first
  const keys = new Set(present.flatMap((value) => Object.keys(value as object)))
  const members = [...keys].map((key): [string, unknown] => [
    key,
    combine(
      present.map((value) => (value as Readonly<Record<string, unknown>>)[key]),
      path === '' ? key : `${path}.${key}`,
      columns,
    ),
  ])
  return Object.fromEntries(members.filter(([key]) => path !== '' || (key !== 'repeat' && key !== 'order')))
}

function combineNumbers(values: readonly number[], path: string, columns: readonly ResultColumn[]): number | null {
  switch (columns.find(({ key }) => key === path)?.repeats) {
    case 'max':
      return Math.max(...values)
    case 'min':
      return Math.min(...values)
    case undefined:
      return median(values)
  }
}
