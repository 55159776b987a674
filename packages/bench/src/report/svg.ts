import { RunError } from '../exit-codes.js'
import {
  cellOf,
  isDoubtful,
  type ResultColumn,
  type ResultCurve,
  type ResultRecord,
  type ResultRow,
  type ResultTimeline,
} from '../results/result.js'
import { machineLine } from './environment.js'
import { axisFormat, axisLabel } from './format-cell.js'
import { isLog } from './page.js'
import { planPlots, speakOf } from './plot-plan.js'

/** The cost of a delivery compares best; scenarios without it show their first plotted figure. */
const MAIN_METRIC = 'deliveriesPerServerCpuSecond'

// Units of the drawing.
const WIDTH = 720
const HEAD = 48
const LEFT = 250
const RIGHT = 24
const BAR = { row: 44, height: 24, valueWidth: 110 }
const PANEL = { head: 34, height: 90 }
const CURVE = { head: 34, height: 220, foot: 44 }

/** The picture has its own background, so it is readable on light and dark pages. */
const STYLE = `:root{--card:#fff;--ink:#17170f;--soft:#5b5a55;--line:#e3e2dc}
@media(prefers-color-scheme:dark){:root{--card:#1c1c1a;--ink:#f2f1ec;--soft:#bdbcb4;--line:#34342f}}
text{font:14px system-ui,sans-serif;fill:var(--soft)}.head{font-size:18px;font-weight:600;fill:var(--ink)}
.value{fill:var(--ink)}.ground{fill:var(--card)}.axis{stroke:var(--line);fill:none}.band{fill:var(--ink);opacity:.07}
.line{fill:none;stroke:currentColor;stroke-width:1.5}.reference{stroke-dasharray:6 4}.dot{fill:currentColor}.bar{fill:currentColor;stroke:currentColor}
.doubt{fill:var(--card);stroke-dasharray:4 2}.spread{stroke:var(--ink);stroke-width:2;opacity:.7}
.s0{color:#2a78d6}.s1{color:#e06522}.s2{color:#128a5e}.s3{color:#c78500}.s4{color:#7a6ad7}.s5{color:#d23f3e}`
const LOOK_COUNT = 6

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

interface Drawing {
  readonly height: number
  readonly parts: readonly string[]
}

/**
 * The curves of a result, its timelines, or bars of its main figure where it has neither, as a self-contained picture for a
 * README, with the command that made it.
 * @throws {RunError} when the result has nothing to plot.
 */
export function svgText(record: ResultRecord): string {
  const { title, height, parts } = mainDrawing(record)
  const foot = `<text x="24" y="${HEAD + height + 24}">${escapeXml(machineLine(record))}</text>`
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEAD + height + 40}" role="img" aria-label="${escapeXml(title)}">` +
    `<style>${STYLE}</style><rect class="ground" width="100%" height="100%" rx="8"/>` +
    `<text class="head" x="24" y="30">${escapeXml(title)}</text><g transform="translate(0 ${HEAD})">${parts.join('')}</g>` +
    `${foot}<desc>${escapeXml(record.command)}</desc></svg>\n`
  )
}

function mainDrawing(record: ResultRecord): Drawing & { readonly title: string } {
  const { curves = [] } = record
  const [curve] = curves
  if (curve !== undefined) return { title: `${curve.y}, by what is offered`, ...curvesDrawing(curves) }
  const [timeline] = record.timelines ?? []
  if (timeline !== undefined) return { title: timeline.title, ...timelineDrawing(timeline) }
  const { metrics, facets, seriesOf, seriesNames, x } = planPlots(record)
  const column = metrics.find(({ key }) => key === MAIN_METRIC) ?? metrics[0]
  const [facet] = facets
  if (column === undefined || facet === undefined) throw new RunError('--svg: the result has nothing to plot')
  const nameOf = (row: ResultRow) =>
    x === null ? seriesOf(row) : `${seriesOf(row)}, ${speakOf(cellOf(row, x.key), x)}`
  const title = [axisLabel(column), ...(facet.name === '' ? [] : [facet.name])].join(', ')
  return { title, ...barsDrawing(facet.rows, column, nameOf, (row) => seriesNames.indexOf(seriesOf(row))) }
}

/** Horizontal bars from zero, with the range of the repeats; hollow where the figure is not reliable. */
function barsDrawing(
  rows: readonly ResultRow[],
  column: ResultColumn,
  nameOf: (row: ResultRow) => string,
  lookOf: (row: ResultRow) => number,
): Drawing {
  const { key, format } = column
  const bars = rows.map((row) => {
    const value = Number(cellOf(row, key) ?? 0)
    return { row, value, ...(row.spread[key] ?? { min: value, max: value }) }
  })
  const most = Math.max(...bars.map(({ max }) => max))
  const wide = (value: number) => (most > 0 ? round((value / most) * (WIDTH - LEFT - BAR.valueWidth)) : 0)
  const parts = bars.map(({ row, value, min, max }, index) => {
    const top = index * BAR.row
    const middle = top + BAR.height / 2
    // The cost of a delivery is the server's own figure, even where the generator decides the rate.
    const isSure = row.verdict === 'ok' || (key === MAIN_METRIC && isDoubtful(row.verdict))
    const name = escapeXml(nameOf(row))
    return (
      `<g class="s${lookOf(row) % LOOK_COUNT}"><text x="${LEFT - 12}" y="${middle + 5}" text-anchor="end">${name}</text>` +
      `<path class="bar${isSure ? '' : ' doubt'}" data-series="${name}" d="M${LEFT} ${top}h${wide(value)}v${BAR.height}H${LEFT}Z"/>` +
      (min < max ? `<path class="spread" d="M${LEFT + wide(min)} ${middle}H${LEFT + wide(max)}"/>` : '') +
      `<text class="value" x="${LEFT + wide(max) + 10}" y="${middle + 5}">${cellOf(row, key) === null ? '–' : axisFormat(format)(value)}</text></g>`
    )
  })
  return { height: rows.length * BAR.row, parts }
}

/** Panels below each other over the same seconds, with marked spans. */
function timelineDrawing({ stepMs, bands, panels }: ResultTimeline): Drawing {
  const stepCount = Math.max(1, ...panels.flatMap(({ lines }) => lines.map(({ values }) => values.length)))
  const endMs = Math.max(stepCount * stepMs, ...bands.map(({ toMs }) => toMs))
  const placeX = (ms: number) => round(64 + (ms / endMs) * (WIDTH - 64 - RIGHT))
  const height = 20 + panels.length * (PANEL.head + PANEL.height)
  const spans = bands.map(({ label, fromMs, toMs }, index) => {
    const [left, right] = [placeX(fromMs), placeX(toMs)]
    const y = index % 2 === 0 ? 8 : 22
    return (
      `<rect class="band" x="${left}" y="12" width="${Math.max(1, round(right - left))}" height="${height - 12}"/>` +
      `<text class="value" x="${left}" y="${y}">${escapeXml(label)}</text>`
    )
  })
  const drawn = panels.map(({ title, unit, format, lines }, index) => {
    const top = 20 + index * (PANEL.head + PANEL.height) + PANEL.head
    const values = lines.flatMap((line) => line.values).filter((value) => value !== null)
    const isRatio = isLog(values)
    const most = Math.max(...values, 0) || 1
    const least = isRatio ? Math.min(...values) : 0
    const share = (value: number) => (isRatio ? Math.log(value / least) / Math.log(most / least) : value / most)
    const placeY = (value: number) => round(top + PANEL.height * (1 - share(value)))
    const ends = [least, most].map(
      (value) =>
        `<path class="axis" d="M64 ${placeY(value)}H${WIDTH - RIGHT}"/>` +
        `<text x="56" y="${placeY(value) + 5}" text-anchor="end">${axisFormat(format)(value)}</text>`,
    )
    const names = lines.length < 2 ? '' : `: ${lines.map(({ name }) => name).join(', ')}`
    const paths = lines.map(({ name, values: own }, look) => {
      // A value between two holes is a dot.
      const steps = own.map((value, step) => {
        if (value === null) return ''
        const place = `${placeX((step + 1) * stepMs)} ${placeY(value)}`
        return step > 0 && own[step - 1] !== null ? `L${place}` : `M${place}h.5`
      })
      return `<path class="line s${look % LOOK_COUNT}" data-series="${escapeXml(name)}" d="${steps.join('')}"/>`
    })
    return `<text class="value" x="64" y="${top - 10}">${escapeXml(axisLabel({ title, unit, format }) + names)}</text>${ends.join('')}${paths.join('')}`
  })
  const seconds = `<text x="${WIDTH - RIGHT}" y="${height + 18}" text-anchor="end">${Math.round(endMs / 1_000)} seconds</text>`
  return { height: height + 20, parts: [...spans, ...drawn, seconds] }
}

/** Curves below each other, over the same axes. Those that others are held against are dashed. */
function curvesDrawing(curves: readonly ResultCurve[]): Drawing {
  const points = curves.flatMap(({ lines }) => lines.flatMap((line) => line.points))
  const most = { x: Math.max(1, ...points.map(({ x }) => x)), y: Math.max(1, ...points.map(({ y }) => y)) }
  const full = CURVE.head + CURVE.height + CURVE.foot
  const parts = curves.map(({ title, x, lines }, index) => {
    const bottom = index * full + CURVE.head + CURVE.height
    const placeX = (value: number) => round(64 + (value / most.x) * (WIDTH - 64 - 2 * RIGHT))
    const placeY = (value: number) => round(bottom - (value / most.y) * CURVE.height)
    const steps = [0, 0.5, 1]
    const rows = steps.map(
      (value) =>
        `<path class="axis" d="M64 ${placeY(value)}H${WIDTH - RIGHT}"/>` +
        `<text x="56" y="${placeY(value) + 5}" text-anchor="end">${axisFormat('percent')(value)}</text>`,
    )
    const ticks = Array.from({ length: Math.floor(most.x * 2) + 1 }, (_, half) => half / 2)
    const scale = ticks.map(
      (value) =>
        `<text x="${placeX(value)}" y="${bottom + 20}" text-anchor="middle">${axisFormat('ratio')(value)}</text>`,
    )
    const drawn = lines.map(({ name, isReference, points: own }) => {
      const places = own.map((point) => `${placeX(point.x)} ${placeY(point.y)}`)
      const dots = isReference
        ? ''
        : own.map((point) => `<circle class="dot" cx="${placeX(point.x)}" cy="${placeY(point.y)}" r="3.5"/>`).join('')
      const look = isReference ? 'line reference s1' : 'line s0'
      return `<path class="${look}" data-series="${escapeXml(name)}" d="M${places.join('L')}"/><g class="s0">${dots}</g>`
    })
    return (
      `<text class="value" x="64" y="${bottom - CURVE.height - 14}">${escapeXml(title)}</text>${rows.join('')}${scale.join('')}` +
      `<text x="${WIDTH - RIGHT}" y="${bottom + 38}" text-anchor="end">${escapeXml(x)}; dashed: the ideal</text>${drawn.join('')}`
    )
  })
  return { height: curves.length * full, parts }
}

function escapeXml(text: string): string {
  const escaped = text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? '')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML cannot hold them
  return escaped.replaceAll(/[\0-\x08\x0B\x0C\x0E-\x1F\x7F]/g, '\uFFFD')
}

/** A tenth of a unit is less than a pixel; more digits would only cost bytes. */
function round(value: number): number {
  return Math.round(value * 10) / 10
}
