import { escapeHtml } from './html-escape.js'
import { createScale } from './svg-scale.js'

/** A ratio with its noise band. */
export interface Interval {
  readonly name: string
  readonly ratio: number
  readonly low: number | null
  readonly high: number | null
  /** Of the page's colours. */
  readonly className: string
}

/** Ratios below each other, about a line at 1. */
export interface IntervalPlot {
  /** Text alternative of the plot. */
  readonly title: string
  readonly intervals: readonly Interval[]
}

// Units of the drawing. It is as wide as the other plots, so that texts have one size.
const WIDTH = 400
const LEFT = 150
const RIGHT = 52
const TOP = 6
const ROW = 24
const NAME_CHARS = 22
/** Intervals beyond these leave the drawing, because so wide a bound says nothing. */
const LEAST_RATIO = 0.01
const MOST_RATIO = 100

/** Ratios on a logarithmic axis, where 2 and 0.5 are equally far from 1. Every text in it is escaped. */
export function intervalPlotSvg({ title, intervals }: IntervalPlot): string {
  const inRange = (value: number) => Math.min(MOST_RATIO, Math.max(LEAST_RATIO, value))
  const bounds = intervals.flatMap(({ ratio, low, high }) => [ratio, low ?? ratio, high ?? ratio].map(inRange))
  // Wide enough that a tenth does not fill the drawing.
  const scale = createScale('log', [...bounds, 0.8, 1.25])
  const placeOf = (value: number) => Math.round((LEFT + scale.at(inRange(value)) * (WIDTH - LEFT - RIGHT)) * 10) / 10
  const bottom = TOP + intervals.length * ROW
  const ticks = scale.ticks.map(
    (tick) =>
      `<path class="grid" d="M${placeOf(tick)} ${TOP}V${bottom}"/>` +
      `<text class="tick" x="${placeOf(tick)}" y="${bottom + 14}" text-anchor="middle">${tick}x</text>`,
  )
  const rows = intervals.map(({ name, ratio, low, high, className }, index) => {
    const y = TOP + index * ROW + ROW / 2
    const short = name.length <= NAME_CHARS ? name : `${name.slice(0, NAME_CHARS - 1)}…`
    const text = `${Number(ratio.toPrecision(3))}x`
    return (
      `<g class="${className}"><text class="tick" x="${LEFT - 8}" y="${y + 4}" text-anchor="end">${escapeHtml(short)}</text>` +
      `<path class="interval" d="M${placeOf(low ?? ratio)} ${y}H${placeOf(high ?? ratio)}"/>` +
      `<circle class="mark" data-series="${escapeHtml(name)}" cx="${placeOf(ratio)}" cy="${y}" r="4.5">` +
      `<title>${escapeHtml(`${name}: ${text}`)}</title></circle>` +
      `<text class="value" x="${WIDTH}" y="${y + 4}" text-anchor="end">${text}</text></g>`
    )
  })
  return (
    `<svg viewBox="0 0 ${WIDTH} ${bottom + 20}" role="img" aria-label="${escapeHtml(title)}">${ticks.join('')}` +
    `<path class="axis" d="M${placeOf(1)} ${TOP}V${bottom}"/>${rows.join('')}</svg>`
  )
}
