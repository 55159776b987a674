import {
  cellOf,
  type ResultColumn,
  type ResultDistribution,
  type ResultRecord,
  type ResultRow,
  type ResultSeries,
  type ResultTimeline,
} from '../results/result.js'
import { axisLabel, formatCell } from './format-cell.js'
import { groupBy } from './group-by.js'
import { isLog, type PagePlot, type PageSeries } from './page.js'
import { type Distribution, type Facet, lowerFirst, type PlotPlan, planPlots, speakOf } from './plot-plan.js'

const PERCENTILES = { p50: 50, p90: 90, p95: 95, p99: 99, p999: 99.9, p9999: 99.99, max: 100 }
/** The largest value stands this far right of the last percentile. */
const MAX_DISTANCE = 0.7
/** More points than pixels would only cost bytes. */
const MAX_TIMELINE_POINTS = 300

/** The plots of a result: distributions, runs over time, each metric over the tiers, percentiles, and values over time. */
export function recordPlots(record: ResultRecord): PagePlot[] {
  const plan = planPlots(record)
  const { distributions = [] } = record
  return [
    ...distributions.map(distributionPlot),
    ...(record.timelines ?? []).flatMap(timelinePlots),
    ...plan.facets.flatMap((facet) => [
      // A single bar compares nothing; the table is shorter.
      ...(plan.x === null && facet.rows.length < 2 ? [] : plan.metrics.map((one) => metricPlot(plan, facet, one))),
      ...plan.distributions
        .filter(({ title }) => !distributions.some((one) => one.title === title))
        .flatMap((one) => percentilePlots(plan, facet, one)),
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

/** How many of the values are where: bars over a scale by ratio, with marked percentiles. */
function distributionPlot({ title, bars: { edgesMs, shares }, marks }: ResultDistribution): PagePlot {
  return {
    title: `${title} (ms), share of all`,
    xLabel: 'ms',
    x: shares.map((_, bar) => Math.sqrt(Number(edgesMs[bar]) * Number(edgesMs[bar + 1]))),
    kind: 'bars',
    isLogX: true,
    isLogY: false,
    series: [{ name: 'share', format: 'percent', values: shares }],
    bands: marks.map(({ label, atMs }) => ({ label: `${label} ${formatCell(atMs, 'ms')}`, from: atMs, to: atMs })),
  }
}

/** The percentiles of a distribution over a scale that has the same room for each further nine, one plot per tier that has any. */
function percentilePlots(plan: PlotPlan, facet: Facet, { key, title, column }: Distribution): PagePlot[] {
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
    const places = placesOf(known.map(([, percent]) => percent))
    return [
      {
        title: [axisLabel({ ...column, title: `${title}${at}` }), ...(facet.name === '' ? [] : [facet.name])].join(
          ', ',
        ),
        xLabel: 'percentile',
        x: places,
        xTicks: known.map(([, percent], place) => ({
          at: places[place] ?? 0,
          label: percent === 100 ? 'max' : `p${percent}`,
        })),
        kind: 'line',
        isLogX: false,
        isLogY: isLog(series.flatMap(({ values }) => values)),
        series,
      },
    ]
  })
}

/** p90 at 1, p99 at 2, p99.9 at 3; the maximum behind the last one. */
function placesOf(percents: readonly number[]): number[] {
  const places = percents.map((percent) => (percent === 100 ? 0 : -Math.log10(1 - percent / 100)))
  const last = Math.max(...places)
  return percents.map((percent, index) => (percent === 100 ? last + MAX_DISTANCE : (places[index] ?? 0)))
}

/** Values over time: one plot per condition, one line per target, of its last repeat. */
function seriesPlots({ series = [], columns, identity, rows }: ResultRecord): PagePlot[] {
  const lastRepeat = Math.max(...series.map(({ repeat }) => repeat))
  // Rounds take the targets in turn; a target has the same colour in all plots.
  const targets = rows.map(({ target }) => target)
  const all = series
    .filter(({ repeat }) => repeat === lastRepeat)
    .toSorted((a, b) => targets.indexOf(a.target) - targets.indexOf(b.target))
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
      // The lines of counts and rates are held against zero, and against each other.
      isLogY: panel.format === 'ms' && isLog(panel.lines.flatMap(({ values }) => values)),
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
