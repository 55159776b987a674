import {
  cellOf,
  type ResultColumn,
  type ResultRecord,
  type ResultRow,
  type ResultSeries,
  type ResultTimeline,
} from '../results/result.js'
import { axisLabel, formatCell } from './format-cell.js'
import { groupBy } from './group-by.js'
import { isLog, type PagePlot, type PageSeries } from './page.js'
import { type Distribution, type Facet, lowerFirst, type PlotPlan, planPlots, speakOf } from './plot-plan.js'

const PERCENTILES = { p50: 'p50', p90: 'p90', p95: 'p95', p99: 'p99', p999: 'p99.9', p9999: 'p99.99', max: 'max' }
/** More points than pixels would only cost bytes. */
const MAX_TIMELINE_POINTS = 300

/** The plots of a result: runs over time, each metric over the tiers, percentiles, and values over time. */
export function recordPlots(record: ResultRecord): PagePlot[] {
  const plan = planPlots(record)
  return [
    ...(record.timelines ?? []).flatMap(timelinePlots),
    ...plan.facets.flatMap((facet) => [
      // A single bar compares nothing; the table is shorter.
      ...(plan.x === null && facet.rows.length < 2 ? [] : plan.metrics.map((one) => metricPlot(plan, facet, one))),
      ...plan.distributions.flatMap((one) => distributionPlots(plan, facet, one)),
    ]),
    ...seriesPlots(record),
  ]
}

/** One metric of the rows of a facet: lines against the tiers, or bars where there is one tier. */
function metricPlot(plan: PlotPlan, facet: Facet, column: ResultColumn): PagePlot {
  const { x } = plan
  const title = [axisLabel(column), ...(facet.name === '' ? [] : [facet.name])].join(', ')
  const names = [...new Set(facet.rows.map(plan.seriesOf))]
  const tiers = x === null ? names.map((_, place) => place) : tiersOf(facet.rows, x)
  const series = names.map((name) => {
    const own = facet.rows.filter((row) => plan.seriesOf(row) === name)
    const points = tiers.map((tier) => own.find((row) => tier === (x ? cellOf(row, x.key) : names.indexOf(name))))
    return seriesOf(name, points, column.key)
  })
  const isLogY = isLog(series.flatMap(({ values, ranges = [] }) => [...values, ...ranges.flatMap((one) => one ?? [])]))
  return {
    title: column.better === undefined ? title : `${title}; ${column.better === 'higher' ? 'more' : 'less'} is better`,
    xLabel: x === null ? '' : axisLabel(x),
    x: tiers,
    ...(x === null ? { xNames: names } : {}),
    kind: x === null ? 'bars' : 'line',
    isLogX: x !== null && isLog(tiers),
    isLogY: x !== null && isLogY,
    series,
  }
}

/** The percentiles of a distribution, one plot per tier that has any. */
function distributionPlots(plan: PlotPlan, facet: Facet, { key, title, column }: Distribution): PagePlot[] {
  const { x } = plan
  const tiers = x === null ? [null] : [...new Set(facet.rows.map((row) => cellOf(row, x.key)))]
  return tiers.flatMap((tier): PagePlot[] => {
    const rows = x === null ? facet.rows : facet.rows.filter((row) => cellOf(row, x.key) === tier)
    const known = Object.entries(PERCENTILES).filter(([name]) =>
      rows.some((row) => numberOf(row, `${key}.${name}`) !== null),
    )
    if (known.length === 0) return []
    const at = x === null || tier === null ? '' : ` at ${formatCell(tier, x.format)} ${lowerFirst(x.title)}`
    const series = rows.map((row) => ({
      name: plan.seriesOf(row),
      values: known.map(([name]) => numberOf(row, `${key}.${name}`)),
      isDoubtful: known.map(() => row.verdict !== 'ok'),
    }))
    return [
      {
        title: [axisLabel({ ...column, title: `${title}${at}` }), ...(facet.name === '' ? [] : [facet.name])].join(
          ', ',
        ),
        xLabel: 'percentile',
        x: known.map((_, place) => place),
        xNames: known.map(([, label]) => label),
        kind: 'line',
        isLogX: false,
        isLogY: isLog(series.flatMap(({ values }) => values)),
        series,
      },
    ]
  })
}

/** Values over time: one plot per condition, one line per target and repeat. */
function seriesPlots({ series: all = [], columns, identity }: ResultRecord): PagePlot[] {
  const conditionOf = ({ subscribers, condition }: ResultSeries) => ({ subscribers, ...condition })
  const named = columns.filter(
    ({ key }) =>
      identity.includes(key) && key !== 'target' && new Set(all.map((one) => cellOf(conditionOf(one), key))).size > 1,
  )
  const groups = groupBy(all, (one) => {
    const condition = named.map((column) => speakOf(cellOf(conditionOf(one), column.key), column))
    return [axisLabel(one), ...condition].join(', ')
  })
  return [...groups].map(([title, own]): PagePlot => {
    const lines = own.map(({ target, points }) => ({ target, points: thinned(points) }))
    const x = [...new Set(lines.flatMap(({ points }) => points.map(({ atMs }) => atMs / 1_000)))].sort((a, b) => a - b)
    const series = lines.map(({ target, points }) => {
      const values = new Map(points.map(({ atMs, value }) => [atMs / 1_000, value]))
      return { name: target, values: x.map((at) => values.get(at) ?? null) }
    })
    return { title, xLabel: 'seconds', x, kind: 'dense', isLogX: false, isLogY: false, series }
  })
}

function timelinePlots({ title, stepMs, bands, panels }: ResultTimeline): PagePlot[] {
  return panels.map((panel): PagePlot => {
    const length = Math.max(0, ...panel.lines.map(({ values }) => values.length))
    return {
      title: `${axisLabel(panel)}, ${title}`,
      xLabel: 'seconds',
      x: Array.from({ length }, (_, step) => ((step + 1) * stepMs) / 1_000),
      kind: 'dense',
      isLogX: false,
      isLogY: isLog(panel.lines.flatMap(({ values }) => values)),
      series: panel.lines,
      bands: bands.map(({ label, fromMs, toMs }) => ({ label, from: fromMs / 1_000, to: toMs / 1_000 })),
    }
  })
}

function seriesOf(name: string, rows: readonly (ResultRow | undefined)[], key: string): PageSeries {
  return {
    name,
    values: rows.map((row) => (row === undefined ? null : numberOf(row, key))),
    ranges: rows.map((row) => {
      const spread = row?.spread[key]
      return spread === undefined ? null : [spread.min, spread.max]
    }),
    isDoubtful: rows.map((row) => row !== undefined && row.verdict !== 'ok'),
  }
}

function tiersOf(rows: readonly ResultRow[], { key }: ResultColumn): number[] {
  return [...new Set(rows.map((row) => numberOf(row, key)).filter((tier) => tier !== null))].sort((a, b) => a - b)
}

function numberOf(row: ResultRow, key: string): number | null {
  const cell = cellOf(row, key)
  return typeof cell === 'number' ? cell : null
}

/** Means of neighbours, because every n-th value alone would be random. */
function thinned(points: ResultSeries['points']): ResultSeries['points'] {
  const each = Math.ceil(points.length / MAX_TIMELINE_POINTS)
  if (each <= 1) return points
  return Array.from({ length: Math.ceil(points.length / each) }, (_, index) => {
    const group = points.slice(index * each, (index + 1) * each)
    return { atMs: group[0]?.atMs ?? 0, value: group.reduce((sum, { value }) => sum + value, 0) / group.length }
  })
}
