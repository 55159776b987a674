import type { ResultColumn } from '../results/result.js'
import { axisFormat, axisLabel } from './format-cell.js'
import type { PlotAxis, PlotSeries } from './svg-plot.js'
import { createScale, createTierScale, type ScaleKind } from './svg-scale.js'

/** The parts of a column that an axis needs. */
export type AxisColumn = Pick<ResultColumn, 'title' | 'unit' | 'format'>

/** From this ratio of largest to smallest on, a linear axis would hide the small values. */
const LOG_FROM_RATIO = 8

/** The axis of the tiers that were measured. */
export function tierAxis(x: AxisColumn, tiers: readonly number[]): PlotAxis {
  return { label: axisLabel(x), scale: createTierScale(kindFor(tiers), tiers), format: axisFormat(x.format) }
}

/** An axis for every value and spread of the lines; logarithmic where a linear one would hide small values. */
export function valueAxis(column: AxisColumn, series: readonly PlotSeries[], kind?: ScaleKind): PlotAxis {
  const values = series
    .flatMap(({ points }) => points.flatMap(({ y, low, high }) => [y, low, high]))
    .filter((value) => value !== null && value !== undefined)
  const scale = createScale(kind ?? kindFor(values), values)
  return { label: axisLabel(column), scale, format: axisFormat(column.format) }
}

/** A zero needs a linear axis, whatever the ratio of the others. */
function kindFor(values: readonly number[]): ScaleKind {
  const least = Math.min(...values)
  return least > 0 && Math.max(...values) / least >= LOG_FROM_RATIO ? 'log' : 'linear'
}
