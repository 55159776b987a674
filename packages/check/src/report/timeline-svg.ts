import { escaped } from './escaped.js'
import type { Arrow, Mark, RowSpan, Timeline, TimelineRow } from './timeline.js'

const WIDTH = 1_160
const LEFT = 118
const RIGHT = 18
const TOP = 10
const ROW_HEIGHT = 44
const FAINT_HEIGHT = 30
const AXIS_HEIGHT = 30
const TICK_STEPS_MS = [100, 200, 500, 1_000, 2_000]
const MAX_TICKS = 12
/** Labels of faults that are narrower are cut. */
const CHAR_WIDTH = 6.2
const NODE_COLORS = 6

/** Draws a timeline. Its colours are those of the page around it. */
export function timelineSvg(timeline: Timeline): string {
  const { fromMs, untilMs, rows, arrows, title } = timeline
  const xOf = (atMs: number) => round(LEFT + ((atMs - fromMs) / (untilMs - fromMs)) * (WIDTH - LEFT - RIGHT))
  const tops = rows.map((_, index) => TOP + rows.slice(0, index).reduce((sum, row) => sum + heightOf(row), 0))
  const yOf = (row: number) => round((tops[row] ?? TOP) + heightOf(rows[row]) / 2)
  const bottom = TOP + rows.reduce((sum, row) => sum + heightOf(row), 0)
  const parts = [
    ticksOf(fromMs, untilMs).map((atMs) => tick(xOf(atMs), bottom, atMs)),
    rows.map((row, index) => rowParts(row, xOf, yOf(index))),
    arrows.map((arrow) => arrowPart(arrow, xOf, yOf)),
    rows.map((row, index) => row.marks.map((mark) => markPart(mark, xOf(mark.atMs), yOf(index)))),
  ]
  const body = parts.flat(3).join('')
  return `<svg viewBox="0 0 ${WIDTH} ${bottom + AXIS_HEIGHT}" role="img" aria-label="${escaped(title)}">${body}</svg>`
}

function heightOf(row: TimelineRow | undefined): number {
  return row?.isFaint === true ? FAINT_HEIGHT : ROW_HEIGHT
}

function rowParts({ name, spans, isFaint, node }: TimelineRow, xOf: (atMs: number) => number, y: number): string[] {
  const tone = isFaint ? ' class="faint"' : ''
  return [
    `<g${tone}><text class="name" x="0" y="${y + 4}">${escaped(name)}</text>`,
    node === undefined ? '' : `<circle class="n${node % NODE_COLORS}" cx="${LEFT - 14}" cy="${y}" r="5"/>`,
    `<line class="base" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/>`,
    ...spans.map((span) => spanPart(span, xOf, y)),
    '</g>',
  ]
}

function spanPart(
  { fromMs, untilMs, kind, node = 0, label = '' }: RowSpan,
  xOf: (atMs: number) => number,
  y: number,
): string {
  const [left, right] = [xOf(fromMs), xOf(untilMs)]
  const width = round(Math.max(2, right - left))
  const title = `<title>${escaped(label)}</title>`
  if (kind === 'connection') {
    return `<g>${title}<rect class="link n${node % NODE_COLORS}" x="${left}" y="${y - 2}" width="${width}" height="4" rx="2"/></g>`
  }
  const height = kind === 'fault' ? 24 : 16
  const shown = label.slice(0, Math.max(0, Math.floor((width - 12) / CHAR_WIDTH)))
  const text =
    kind === 'fault' && shown.length > 3
      ? `<text class="fault-name" x="${left + 7}" y="${y + 4}">${escaped(shown)}</text>`
      : ''
  return `<g>${title}<rect class="${kind}" x="${left}" y="${y - height / 2}" width="${width}" height="${height}" rx="4"/>${text}</g>`
}

function arrowPart({ from, to, isMissed }: Arrow, xOf: (atMs: number) => number, yOf: (row: number) => number): string {
  const kind = isMissed ? 'missed' : 'way'
  return `<line class="${kind}" x1="${xOf(from.atMs)}" y1="${yOf(from.row)}" x2="${xOf(to.atMs)}" y2="${yOf(to.row)}"/>`
}

function markPart({ kind, title, label }: Mark, x: number, y: number): string {
  const shape = SHAPES[kind](x, y)
  // Written to the left where it would leave the picture.
  const isAtEnd = x > WIDTH - 140
  const words =
    label === undefined
      ? ''
      : `<text class="label${kind === 'publish' ? '' : ' bad'}" x="${isAtEnd ? x - 9 : x + 9}" y="${y - 10}"${isAtEnd ? ' text-anchor="end"' : ''}>${escaped(label)}</text>`
  return `<g class="${kind}${label === undefined ? '' : ' focus'}"><title>${escaped(title)}</title>${shape}${words}</g>`
}

const circle = (x: number, y: number, r: number) => `<circle cx="${x}" cy="${y}" r="${r}"/>`
const SHAPES: Readonly<Record<Mark['kind'], (x: number, y: number) => string>> = {
  publish: (x, y) => `<path d="M${x} ${y - 7}V${y + 7}"/>`,
  unsettled: (x, y) => `<path d="M${x} ${y - 7}V${y + 7}"/>`,
  delivery: (x, y) => circle(x, y, 3),
  replay: (x, y) => circle(x, y, 3),
  gap: (x, y) => `<path d="M${x} ${y - 7}L${x + 6} ${y}L${x} ${y + 7}L${x - 6} ${y}Z"/>`,
  recovered: (x, y) => `<path d="M${x} ${y - 7}L${x + 6} ${y + 4}H${x - 6}Z"/>`,
  missed: (x, y) => circle(x, y, 7),
  wrong: (x, y) => `<path d="M${x - 6} ${y - 6}L${x + 6} ${y + 6}M${x + 6} ${y - 6}L${x - 6} ${y + 6}"/>`,
}

function ticksOf(fromMs: number, untilMs: number): number[] {
  const step = TICK_STEPS_MS.find((each) => (untilMs - fromMs) / each <= MAX_TICKS) ?? untilMs - fromMs
  const first = Math.ceil(fromMs / step) * step
  return Array.from({ length: Math.floor((untilMs - first) / step) + 1 }, (_, index) => first + index * step)
}

function tick(x: number, bottom: number, atMs: number): string {
  const seconds = `${Number((atMs / 1_000).toFixed(1))} s`
  return `<line class="tick" x1="${x}" x2="${x}" y1="${TOP}" y2="${bottom}"/><text class="time" x="${x}" y="${bottom + 18}">${seconds}</text>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
