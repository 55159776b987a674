import { escapeHtml } from './html-escape.js'
import { lookClass } from './svg-marker.js'

/** One value per series, for results with a single tier. */
export interface BarPlot {
  /** Text alternative of the plot. */
  readonly title: string
  /** Of the values. */
  readonly label: string
  readonly format: (value: number) => string
  readonly bars: readonly Bar[]
}

/** One bar; `null` is written as text. */
export interface Bar {
  readonly name: string
  /** Number of its colour, the same in every plot of a report. */
  readonly look: number
  readonly value: number | null
  readonly low?: number | undefined
  readonly high?: number | undefined
  /** Why the value is not reliable; its bar is then hollow. */
  readonly doubt?: string
}

// Units of the drawing. It is as wide as the line plots, so that texts have one size.
const WIDTH = 400
const LEFT = 110
/** Room for the value behind the longest bar. */
const RIGHT = 70
const TOP = 8
const ROW = 26
const BAR_HEIGHT = 14
const NAME_CHARS = 16

/** Horizontal bars from zero, as an SVG element that takes its colours from the page. Every text in it is escaped. */
export function barPlotSvg(plot: BarPlot): string {
  const longest = Math.max(...plot.bars.map(({ value, high }) => Math.max(value ?? 0, high ?? 0)), 0)
  const widthOf = (value: number) =>
    longest > 0 ? Math.round((Math.max(0, value) / longest) * (WIDTH - LEFT - RIGHT) * 10) / 10 : 0
  const rows = plot.bars.map(({ name, look, value, low, high, doubt }, index) => {
    const top = TOP + index * ROW
    const middle = top + BAR_HEIGHT / 2
    const end = widthOf(value ?? 0)
    const spread =
      low !== undefined && high !== undefined && low < high
        ? `<path class="spread ends" d="M${LEFT + widthOf(low)} ${middle}H${LEFT + widthOf(high)}"/>`
        : ''
    const behind = LEFT + Math.max(end, high === undefined ? 0 : widthOf(high)) + 6
    const says = value === null ? '–' : plot.format(value)
    return (
      `<g class="${lookClass(look)}"><text class="tick" x="${LEFT - 8}" y="${middle + 4}" text-anchor="end">` +
      `${escapeHtml(shorten(name))}<title>${escapeHtml(name)}</title></text>` +
      `<path class="bar${doubt === undefined ? '' : ' doubt'}" data-series="${escapeHtml(name)}" d="M${LEFT} ${top}h${end}v${BAR_HEIGHT}h${-end}Z">` +
      `<title>${escapeHtml(`${name}: ${says} ${plot.label}${doubt === undefined ? '' : ` (${doubt})`}`)}</title></path>${spread}` +
      `<text class="value" x="${behind}" y="${middle + 4}">${escapeHtml(says)}</text></g>`
    )
  })
  const height = TOP + plot.bars.length * ROW
  return (
    `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeHtml(plot.title)}">` +
    `<path class="axis" d="M${LEFT} ${TOP - 4}V${height - 6}"/>${rows.join('')}</svg>`
  )
}

function shorten(name: string): string {
  return name.length <= NAME_CHARS ? name : `${name.slice(0, NAME_CHARS - 1)}…`
}
