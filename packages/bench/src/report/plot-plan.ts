import { type Cell, cellOf, type ResultColumn, type ResultRow, type ScenarioResult } from '../results/result.js'
import { axisFormat, formatCell } from './format-cell.js'
import { groupBy } from './group-by.js'

/** Rows that share their plots. */
export interface Facet {
  /** The values that distinguish this facet from others; empty when there is only one. */
  readonly name: string
  readonly rows: readonly ResultRow[]
}

/** The lines, the horizontal axis and the separate plots of a result. */
export interface PlotPlan {
  /** The tiers; `null` when there is only one, which is plotted as bars. */
  readonly x: ResultColumn | null
  /** The name of the line that a row is a point of. */
  readonly seriesOf: (row: ResultRow) => string
  /** Every line's name, in the order of the rows. */
  readonly seriesNames: readonly string[]
  readonly facets: readonly Facet[]
  /** The columns with a plot. */
  readonly metrics: readonly ResultColumn[]
  /** Members of the rows that are distributions, such as `latencyMs`, by a column of each. */
  readonly distributions: readonly Distribution[]
}

/** A member of the rows with percentiles. */
export interface Distribution {
  readonly key: string
  readonly title: string
  readonly column: ResultColumn
}

/** Order of the plots: the main figures first. */
const HEADLINES = ['deliveriesPerSecond', 'deliveriesPerServerCpuSecond']
const PERCENTILE = /^(.+)\.(p50|p90|p95|p99|p999|p9999|max)$/
/** Percentiles plotted over the tiers: the others lie between these two. The distribution has plots of its own. */
const PLOTTED_PERCENTILES = ['p50', 'p99']

/** Decides the axes and lines of the plots from the identity of the rows alone, without knowing the scenario. */
export function planPlots(result: ScenarioResult): PlotPlan {
  const { columns, identity, rows } = result
  const varying = columns.filter(
    ({ key }) => identity.includes(key) && new Set(rows.map((row) => cellOf(row, key))).size > 1,
  )
  const numeric = varying.filter(({ format }) => format !== 'text')
  const x = numeric.find(({ key }) => key === 'subscribers') ?? numeric[0] ?? null
  const byTarget = varying.find(({ key }) => key === 'target')
  // One target alone: its modes or formats are the lines.
  const line = byTarget ?? varying.find(({ format }) => format === 'text')
  const seriesOf = (row: ResultRow) => (line === undefined ? row.target : speakOf(cellOf(row, line.key), line))
  const facetColumns = varying.filter((column) => column !== x && column !== line)
  const distributions = distributionsOf(columns, rows)
  return {
    x,
    seriesOf,
    seriesNames: [...new Set(rows.map(seriesOf))],
    facets: facetsOf(facetColumns, rows),
    metrics: metricsOf(result, x !== null, distributions),
    distributions,
  }
}

/** A tier or setting in words: `1,000 connections`, `100 offered/s`, `flood`. */
export function speakOf(cell: Cell, { format, title }: ResultColumn): string {
  if (format === 'text') return formatCell(cell, format)
  // The title has the unit already: not "100/s offered/s".
  const isRateTwice = format === 'rate' && title.endsWith('/s')
  // Chosen shares are round, unlike measured ones.
  const value = format === 'percent' && typeof cell === 'number' ? axisFormat(format)(cell) : null
  return `${value ?? formatCell(cell, isRateTwice ? 'number' : format)} ${lowerFirst(title)}`
}

/** Keeps abbreviations in capitals: `RSS`, `CPU seconds`. */
export function lowerFirst(title: string): string {
  return /^[A-Z][a-z]/.test(title) ? `${title.charAt(0).toLowerCase()}${title.slice(1)}` : title
}

function facetsOf(columns: readonly ResultColumn[], rows: readonly ResultRow[]): Facet[] {
  const nameOf = (row: ResultRow) => columns.map((column) => speakOf(cellOf(row, column.key), column)).join(', ')
  return [...groupBy(rows, nameOf)].map(([name, own]) => ({ name, rows: own }))
}

function metricsOf(
  { columns, identity, rows }: ScenarioResult,
  hasTiers: boolean,
  distributions: readonly Distribution[],
): ResultColumn[] {
  const metrics = columns.flatMap((column): ResultColumn[] => {
    const { key, format, better } = column
    if (better === undefined || format === 'text' || identity.includes(key)) return []
    const values = rows.map((row) => cellOf(row, key)).filter((cell) => typeof cell === 'number')
    // Values that are the same everywhere, such as no gaps, are only in the table.
    if (values.every((value) => value === values[0]) && (values.length > 1 || !values[0])) return []
    const [, member, percentile = ''] = PERCENTILE.exec(key) ?? []
    const distribution = distributions.find((candidate) => candidate.key === member)
    if (distribution === undefined) return [column]
    // At one tier the plot of the distribution is enough.
    if (!hasTiers || !PLOTTED_PERCENTILES.includes(percentile)) return []
    return [{ ...column, title: fullTitle(column) }]
  })
  const rank = ({ key }: ResultColumn) => (HEADLINES.includes(key) ? HEADLINES.indexOf(key) : HEADLINES.length)
  return metrics.sort((a, b) => rank(a) - rank(b))
}

function distributionsOf(columns: readonly ResultColumn[], rows: readonly ResultRow[]): Distribution[] {
  const found = new Map<string, ResultColumn[]>()
  for (const column of columns) {
    const [, member] = PERCENTILE.exec(column.key) ?? []
    if (member === undefined) continue
    if (!rows.some((row) => typeof cellOf(row, column.key) === 'number')) continue
    found.set(member, [...(found.get(member) ?? []), column])
  }
  return [...found].flatMap(([key, own]) => {
    const [column] = own
    if (column === undefined || own.length < 2) return []
    return [{ key, title: spoken(key), column }]
  })
}

/** The title of a column that stands alone: `Latency p99` where the table has `p99`. */
export function fullTitle({ key, title }: ResultColumn): string {
  const [, member, percentile] = PERCENTILE.exec(key) ?? []
  return member === undefined || percentile === undefined ? title : `${spoken(member)} ${percentile}`
}

/** `serverEventLoopLagMs` as `Server event loop lag`: the axis has the unit. */
function spoken(key: string): string {
  const words = key.replace(/Ms$/, '').replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}
