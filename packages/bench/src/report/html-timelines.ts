import { cellOf, type ResultSeries, type ScenarioResult } from '../results/result.js'
import { axisLabel } from './format-cell.js'
import { escapeHtml } from './html-escape.js'
import { figure, type LookOf } from './html-figure.js'
import { valueAxis } from './plot-axes.js'
import { speakOf } from './plot-plan.js'
import { linePlotSvg, type PlotSeries } from './svg-plot.js'
import { createScale } from './svg-scale.js'

/** More points than pixels would only cost bytes. */
const MAX_TIMELINE_POINTS = 300
const PLAIN = { title: '', unit: '', format: 'number' } as const

/** Values over time: one figure per condition, one line per target and repeat. */
export function timelineFigures(
  { series: timelines = [], columns, identity }: ScenarioResult,
  lookOf: LookOf,
): string[] {
  const conditionOf = ({ subscribers, condition }: ResultSeries) => ({ subscribers, ...condition })
  const named = columns.filter(
    ({ key }) =>
      identity.includes(key) &&
      key !== 'target' &&
      new Set(timelines.map((timeline) => cellOf(conditionOf(timeline), key))).size > 1,
  )
  const groups = new Map<string, ResultSeries[]>()
  for (const timeline of timelines) {
    const condition = named.map((column) => speakOf(cellOf(conditionOf(timeline), column.key), column))
    const name = [upperFirst(axisLabel(timeline)), ...condition].join(', ')
    groups.set(name, [...(groups.get(name) ?? []), timeline])
  }
  return [...groups].map(([title, own]) => {
    const series = own.map(
      (timeline): PlotSeries => ({
        name: timeline.target,
        look: lookOf(timeline.target),
        points: thinned(timeline.points).map(({ atMs, value }) => ({ x: atMs / 1_000, y: value })),
      }),
    )
    const [first] = own
    const times = series.flatMap(({ points }) => points.map((point) => point.x))
    const svg = linePlotSvg({
      title: `${title} over time`,
      x: { label: 'seconds', scale: createScale('linear', times), format: String },
      y: valueAxis(first ?? PLAIN, series, 'linear'),
      series,
      hasMarkers: false,
    })
    return figure(escapeHtml(title), svg)
  })
}

/** Means of neighbours, because every n-th value alone would be random. */
function thinned(points: ResultSeries['points']): ResultSeries['points'] {
  const each = Math.ceil(points.length / MAX_TIMELINE_POINTS)
  if (each <= 1) return points
  return Array.from({ length: Math.ceil(points.length / each) }, (_, index) => {
    const group = points.slice(index * each, (index + 1) * each)
    return {
      atMs: group[0]?.atMs ?? 0,
      value: group.reduce((sum, { value }) => sum + value, 0) / group.length,
    }
  })
}

function upperFirst(title: string): string {
  return `${title.charAt(0).toUpperCase()}${title.slice(1)}`
}
