import { cellOf, type ResultColumn, type ResultRow } from '../results/result.js'
import { axisFormat, axisLabel, formatCell } from './format-cell.js'
import { escapeHtml } from './html-escape.js'
import { figure, type LookOf } from './html-figure.js'
import { tierAxis, valueAxis } from './plot-axes.js'
import { type Distribution, type Facet, lowerFirst, type PlotPlan } from './plot-plan.js'
import { barPlotSvg } from './svg-bars.js'
import { linePlotSvg, type PlotPoint } from './svg-plot.js'
import { createTierScale } from './svg-scale.js'

const PERCENTILES: readonly (readonly [key: string, label: string])[] = [
  ['p50', 'p50'],
  ['p90', 'p90'],
  ['p95', 'p95'],
  ['p99', 'p99'],
  ['p999', 'p99.9'],
  ['p9999', 'p99.99'],
  ['max', 'max'],
]

/** One metric of the rows of a facet: lines against the tiers, or bars where there is one tier. */
export function metricFigure(plan: PlotPlan, facet: Facet, column: ResultColumn, lookOf: LookOf): string {
  const direction =
    column.better === undefined ? '' : ` <small>${column.better === 'higher' ? 'more' : 'less'} is better</small>`
  return figure(`${escapeHtml(axisLabel(column))}${direction}`, metricSvg(plan, facet, column, lookOf))
}

/** The plot of {@link metricFigure} without its caption. */
export function metricSvg(plan: PlotPlan, facet: Facet, column: ResultColumn, lookOf: LookOf): string {
  const { x } = plan
  const title = x === null ? column.title : `${column.title} against ${lowerFirst(x.title)}`
  const name = facet.name === '' ? title : `${title}, ${facet.name}`
  return x === null ? bars(plan, facet, column, lookOf, name) : lines(plan, facet, x, column, lookOf, name)
}

function bars(plan: PlotPlan, facet: Facet, column: ResultColumn, lookOf: LookOf, title: string): string {
  return barPlotSvg({
    title,
    label: axisLabel(column),
    format: axisFormat(column.format),
    bars: facet.rows.map((row) => {
      const name = plan.seriesOf(row)
      const value = numberOf(row, column.key)
      return { name, look: lookOf(name), value, ...spreadOf(row, column.key), ...doubtOf(row) }
    }),
  })
}

function lines(
  plan: PlotPlan,
  facet: Facet,
  x: ResultColumn,
  column: ResultColumn,
  lookOf: LookOf,
  title: string,
): string {
  const points = (rows: readonly ResultRow[]): PlotPoint[] =>
    rows.map((row) => ({
      x: numberOf(row, x.key) ?? Number.NaN,
      y: numberOf(row, column.key),
      ...spreadOf(row, column.key),
      ...doubtOf(row),
    }))
  const series = bySeries(plan, facet.rows).map(([name, rows]) => ({ name, look: lookOf(name), points: points(rows) }))
  return linePlotSvg({
    title,
    x: tierAxis(
      x,
      facet.rows.map((row) => numberOf(row, x.key)).filter((tier) => tier !== null),
    ),
    y: valueAxis(column, series),
    series,
    hasMarkers: true,
  })
}

/** The percentiles of a distribution, one figure per tier that has any. */
export function distributionFigures(
  plan: PlotPlan,
  facet: Facet,
  distribution: Distribution,
  lookOf: LookOf,
): string[] {
  const { x } = plan
  const tiers = x === null ? [null] : [...new Set(facet.rows.map((row) => cellOf(row, x.key)))]
  return tiers.flatMap((tier) => {
    const rows = x === null ? facet.rows : facet.rows.filter((row) => cellOf(row, x.key) === tier)
    const known = PERCENTILES.filter(([key]) =>
      rows.some((row) => numberOf(row, `${distribution.key}.${key}`) !== null),
    )
    if (known.length === 0) return []
    const series = bySeries(plan, rows).map(([name, own]) => ({
      name,
      look: lookOf(name),
      points: known.map(([key], index) => ({
        x: index,
        y: own[0] === undefined ? null : numberOf(own[0], `${distribution.key}.${key}`),
        ...(own[0] === undefined ? {} : doubtOf(own[0])),
      })),
    }))
    const at = x === null || tier === null ? '' : `${formatCell(tier, x.format)} ${lowerFirst(x.title)}`
    const title = `${distribution.title}${at === '' ? '' : ` at ${at}`}`
    const svg = linePlotSvg({
      title: facet.name === '' ? title : `${title}, ${facet.name}`,
      x: {
        label: 'percentile',
        scale: createTierScale(
          'linear',
          known.map((_, index) => index),
        ),
        format: (index) => known[index]?.[1] ?? '',
      },
      y: valueAxis({ ...distribution.column, title: distribution.title }, series),
      series,
      hasMarkers: true,
    })
    return [figure(escapeHtml(axisLabel({ ...distribution.column, title })), svg)]
  })
}

function bySeries(plan: PlotPlan, rows: readonly ResultRow[]): [name: string, rows: ResultRow[]][] {
  const series = new Map<string, ResultRow[]>()
  for (const row of rows) {
    const name = plan.seriesOf(row)
    series.set(name, [...(series.get(name) ?? []), row])
  }
  return [...series]
}

function numberOf(row: ResultRow, key: string): number | null {
  const cell = cellOf(row, key)
  return typeof cell === 'number' ? cell : null
}

function spreadOf(row: ResultRow, key: string): { low?: number; high?: number } {
  const spread = row.spread[key]
  return spread === undefined ? {} : { low: spread.min, high: spread.max }
}

function doubtOf({ verdict }: ResultRow): { doubt?: string } {
  return verdict === 'ok' ? {} : { doubt: verdict }
}
