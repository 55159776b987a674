import { escapeHtml } from './html-escape.js'
import { lookClass, markerPath } from './svg-marker.js'
import { isPlottable, type Scale } from './svg-scale.js'

/** One measured value, with the spread of its repetitions where there were several. */
export interface PlotPoint {
  readonly x: number
  /** `null` breaks the line: nothing was measured. */
  readonly y: number | null
  readonly low?: number | undefined
  readonly high?: number | undefined
  /** Why the value is not reliable; its marker is then hollow. */
  readonly doubt?: string
}

/** One line. */
export interface PlotSeries {
  readonly name: string
  /** Number of its colour and marker, the same in every plot of a report. */
  readonly look: number
  readonly points: readonly PlotPoint[]
}

/** A direction of a plot. */
export interface PlotAxis {
  readonly label: string
  readonly scale: Scale
  readonly format: (value: number) => string
}

/** Lines over two axes. */
export interface LinePlot {
  /** Text alternative of the plot. */
  readonly title: string
  readonly x: PlotAxis
  readonly y: PlotAxis
  readonly series: readonly PlotSeries[]
  /** Whether points have markers and show their value on hover; not for dense timelines. */
  readonly hasMarkers: boolean
}

// Units of the drawing. It is about as wide as a phone, and scales up on a desktop.
const WIDTH = 400
const HEIGHT = 236
const LEFT = 54
const RIGHT = 12
const TOP = 10
const BOTTOM = 38
/** Keeps markers off the frame. */
const INSET = 10
/** A character of an axis label is about this wide, a label is this far from the next. */
const LABEL_CHAR = 6.5
const LABEL_GAP = 6

/** An SVG element that takes its colours from the page and scales with its container. Every text in it is escaped. */
export function linePlotSvg(plot: LinePlot): string {
  const parts = [yAxis(plot.y), xAxis(plot.x), ...plot.series.map((series) => line(plot, series))]
  return (
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(plot.title)}">` +
    `${parts.join('')}</svg>`
  )
}

function placeX(axis: PlotAxis, value: number): number {
  return round(LEFT + INSET + axis.scale.at(value) * (WIDTH - LEFT - RIGHT - 2 * INSET))
}

function placeY(axis: PlotAxis, value: number): number {
  return round(HEIGHT - BOTTOM - axis.scale.at(value) * (HEIGHT - TOP - BOTTOM))
}

function yAxis(axis: PlotAxis): string {
  const rows = axis.scale.ticks.map((tick) => {
    const y = placeY(axis, tick)
    return (
      `<path class="grid" d="M${LEFT} ${y}H${WIDTH - RIGHT}"/>` +
      `<text class="tick" x="${LEFT - 6}" y="${round(y + 4)}" text-anchor="end">${escapeHtml(axis.format(tick))}</text>`
    )
  })
  return rows.join('') // The label is the caption of the figure, where it can wrap.
}

function xAxis(axis: PlotAxis): string {
  const bottom = HEIGHT - BOTTOM
  const labels: string[] = []
  let freeFrom = 0
  for (const tick of axis.scale.ticks) {
    const text = axis.format(tick)
    const halfWidth = (text.length * LABEL_CHAR) / 2
    const x = placeX(axis, tick)
    labels.push(`<path class="axis" d="M${x} ${bottom}v4"/>`)
    if (x - halfWidth < freeFrom) continue // The mark stays; two labels on each other would be none.
    labels.push(`<text class="tick" x="${x}" y="${bottom + 16}" text-anchor="middle">${escapeHtml(text)}</text>`)
    freeFrom = x + halfWidth + LABEL_GAP
  }
  const middle = (LEFT + WIDTH - RIGHT) / 2
  return (
    `<path class="axis" d="M${LEFT} ${bottom}H${WIDTH - RIGHT}"/>${labels.join('')}` +
    `<text class="label" x="${middle}" y="${HEIGHT - 4}" text-anchor="middle">${escapeHtml(axis.label)}</text>`
  )
}

function line(plot: LinePlot, series: PlotSeries): string {
  const { x, y, hasMarkers } = plot
  const isVisible = (value: number | null | undefined): value is number =>
    value !== null && value !== undefined && isPlottable(y.scale.kind, value)
  const points = [...series.points].sort((a, b) => a.x - b.x)
  let path = ''
  let command = 'M'
  for (const point of points) {
    if (!isVisible(point.y)) {
      command = 'M'
      continue
    }
    path += `${command}${placeX(x, point.x)} ${placeY(y, point.y)}`
    command = 'L'
  }
  const marks = hasMarkers ? points.map((point) => (isVisible(point.y) ? mark(point, point.y) : '')).join('') : ''
  return `<g class="${lookClass(series.look)}"><path class="line${hasMarkers ? '' : ' dense'}" data-series="${escapeHtml(series.name)}" d="${path}"/>${marks}</g>`

  function mark(point: PlotPoint, value: number): string {
    const atX = placeX(x, point.x)
    const spread =
      isVisible(point.low) && isVisible(point.high) && point.low < point.high
        ? `<path class="spread" d="M${atX} ${placeY(y, point.low)}V${placeY(y, point.high)}"/>`
        : ''
    const says = `${series.name}, ${x.label} ${x.format(point.x)}: ${y.format(value)} ${y.label}${point.doubt === undefined ? '' : ` (${point.doubt})`}`
    return (
      `${spread}<path class="mark${point.doubt === undefined ? '' : ' doubt'}" transform="translate(${atX} ${placeY(y, value)})" d="${markerPath(series.look)}">` +
      `<title>${escapeHtml(says)}</title></path>`
    )
  }
}

/** A tenth of a unit is less than a pixel; more digits would only cost bytes. */
function round(value: number): number {
  return Math.round(value * 10) / 10
}
