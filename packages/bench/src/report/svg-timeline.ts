import type { ResultTimeline, TimelinePanel } from '../results/result.js'
import { axisFormat, axisLabel } from './format-cell.js'
import { escapeHtml } from './html-escape.js'
import { valueAxis } from './plot-axes.js'
import { lookClass } from './svg-marker.js'
import type { PlotAxis, PlotSeries } from './svg-plot.js'
import { createScale, isPlottable, type Scale } from './svg-scale.js'

// Units of the drawing. It is about as wide as a phone, and scales up on a desktop.
const WIDTH = 400
const LEFT = 44
const RIGHT = 10
/** Labels of bands stand in rows above the panels. */
const LABEL_ROW = 15
const PANEL_HEAD = 24
const PANEL_HEIGHT = 60
const BOTTOM = 38
/** A character of a label is about this wide, a label is this far from the next. */
const LABEL_CHAR = 6.5
const LABEL_GAP = 6
/** Labels of a panel's values are this far from each other at least. */
const TICK_GAP = 15

/** Plots below each other over the same seconds, as an SVG element that takes its colours from the page. */
export function timelineSvg({ title, stepMs, bands, panels }: ResultTimeline): string {
  const stepCount = Math.max(0, ...panels.flatMap(({ lines }) => lines.map(({ values }) => values.length)))
  const endMs = Math.max(stepCount * stepMs, ...bands.map(({ toMs }) => toMs))
  const time = timeScale(endMs / 1_000)
  const placeX = (ms: number) => round(LEFT + time.at(ms / 1_000) * (WIDTH - LEFT - RIGHT))
  const labels = placeLabels(bands.map(({ label, fromMs }) => ({ label, x: placeX(fromMs) })))
  const top = 4 + LABEL_ROW * Math.max(0, ...labels.map(({ row }) => row + 1))
  const bottom = top + panels.length * (PANEL_HEAD + PANEL_HEIGHT)
  const spans = bands.map(({ label, fromMs, toMs }) => {
    const from = placeX(fromMs)
    const seconds = `${(fromMs / 1_000).toFixed(1)} to ${(toMs / 1_000).toFixed(1)} s`
    return (
      `<rect class="band" x="${from}" y="${top}" width="${Math.max(1, round(placeX(toMs) - from))}" height="${bottom - top}">` +
      `<title>${escapeHtml(`${label}, ${seconds}`)}</title></rect>`
    )
  })
  const names = labels.map(
    ({ label, x, row }) =>
      `<path class="axis" d="M${x} ${4 + row * LABEL_ROW}V${bottom}" stroke-dasharray="2 3"/>` +
      `<text class="value" x="${round(x + 3)}" y="${4 + row * LABEL_ROW + 11}">${escapeHtml(label)}</text>`,
  )
  const drawn = panels.map((panel, index) =>
    panelSvg(panel, top + index * (PANEL_HEAD + PANEL_HEIGHT) + PANEL_HEAD, (step) => placeX((step + 1) * stepMs)),
  )
  const height = bottom + BOTTOM
  return (
    `<svg class="timeline" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeHtml(`${title} over time`)}">` +
    `${spans.join('')}${drawn.join('')}${names.join('')}${timeAxis(time, bottom, placeX)}</svg>`
  )
}

/** It ends with the run, not at the next round number. */
function timeScale(endS: number): Scale {
  const { ticks } = createScale('linear', [endS])
  return {
    kind: 'linear',
    ticks: ticks.filter((tick) => tick <= endS),
    at: (seconds) => (endS > 0 ? seconds / endS : 0),
  }
}

/** Each label begins where its band does, in the first row that is free there. */
function placeLabels(labels: readonly { readonly label: string; readonly x: number }[]) {
  const freeFrom: number[] = []
  return labels.map(({ label, x }) => {
    const free = freeFrom.findIndex((from) => from <= x)
    const row = free === -1 ? freeFrom.length : free
    freeFrom[row] = x + label.length * LABEL_CHAR + LABEL_GAP
    return { label, x, row }
  })
}

/** @param top Of the area of the lines. @param placeX Of a step. */
function panelSvg(panel: TimelinePanel, top: number, placeX: (step: number) => number): string {
  const series = panel.lines.map(
    ({ name, values }, look): PlotSeries => ({ name, look, points: values.map((y, x) => ({ x, y })) }),
  )
  const axis = valueAxis(panel, series)
  const placeY = (value: number) => round(top + PANEL_HEIGHT - axis.scale.at(value) * PANEL_HEIGHT)
  return `${panelHead(panel, top)}${valueTicks(axis, panel, placeY)}${series.map(drawLine).join('')}`

  function drawLine({ name, look, points }: PlotSeries): string {
    let path = ''
    let command = 'M'
    for (const { x, y } of points) {
      if (y === null || !isPlottable(axis.scale.kind, y)) {
        command = 'M'
        continue
      }
      // A value between two holes is a dot.
      path += `${command}${placeX(x)} ${placeY(y)}${command === 'M' ? 'h.5' : ''}`
      command = 'L'
    }
    return `<path class="line dense ${lookClass(look)}" data-series="${escapeHtml(name)}" d="${path}"/>`
  }
}

function panelHead(panel: TimelinePanel, top: number): string {
  const y = top - 6
  const title = `<text class="value" x="${LEFT}" y="${y}">${escapeHtml(axisLabel(panel))}</text>`
  if (panel.lines.length < 2) return title
  let x = WIDTH - RIGHT
  const names = panel.lines
    .map(({ name }, look) => ({ name, look }))
    .reverse()
    .map(({ name, look }) => {
      const text = `<text class="tick" x="${round(x)}" y="${y}" text-anchor="end">${escapeHtml(name)}</text>`
      x -= name.length * LABEL_CHAR + 8
      const swatch = `<path class="line ${lookClass(look)}" d="M${round(x - 12)} ${y - 4}h12"/>`
      x -= 20
      return `${swatch}${text}`
    })
  return `${title}${names.join('')}`
}

function valueTicks({ scale }: PlotAxis, { format }: TimelinePanel, placeY: (value: number) => number): string {
  const write = axisFormat(format)
  let freeBelow = Number.POSITIVE_INFINITY
  const rows = scale.ticks.map((tick) => {
    const y = placeY(tick)
    if (y > freeBelow) return ''
    freeBelow = y - TICK_GAP
    return (
      `<path class="grid" d="M${LEFT} ${y}H${WIDTH - RIGHT}"/>` +
      `<text class="tick" x="${LEFT - 5}" y="${round(y + 4)}" text-anchor="end">${escapeHtml(write(tick))}</text>`
    )
  })
  return rows.join('')
}

function timeAxis(time: Scale, y: number, placeX: (ms: number) => number): string {
  const ticks = time.ticks.map(
    (seconds) =>
      `<path class="axis" d="M${placeX(seconds * 1_000)} ${y}v4"/>` +
      `<text class="tick" x="${placeX(seconds * 1_000)}" y="${y + 16}" text-anchor="middle">${seconds}</text>`,
  )
  return (
    `<path class="axis" d="M${LEFT} ${y}H${WIDTH - RIGHT}"/>${ticks.join('')}` +
    `<text class="label" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${y + 33}" text-anchor="middle">seconds</text>`
  )
}

/** A tenth of a unit is less than a pixel; more digits would only cost bytes. */
function round(value: number): number {
  return Math.round(value * 10) / 10
}
