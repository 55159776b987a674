import type { ResultRecord } from '../results/result.js'
import { machineLine } from './environment.js'
import { escapeHtml } from './html-escape.js'
import { environmentSection, outcomeSection } from './html-facts.js'
import { figure, type LookOf } from './html-figure.js'
import { htmlPage } from './html-page.js'
import { distributionFigures, metricFigure } from './html-plots.js'
import { htmlTable } from './html-table.js'
import { timelineFigures } from './html-timelines.js'
import { type PlotPlan, planPlots } from './plot-plan.js'
import { lookClass, markerPath } from './svg-marker.js'
import { timelineSvg } from './svg-timeline.js'

/**
 * A result as one self-contained page: plots, table, outcome, and the command and machine to reproduce it. It refers to
 * nothing outside itself and needs no script.
 */
export function htmlText(record: ResultRecord): string {
  const plan = planPlots(record)
  const names = [...new Set([...plan.seriesNames, ...(record.series ?? []).map(({ target }) => target)])]
  const lookOf: LookOf = (name) => Math.max(0, names.indexOf(name))
  return htmlPage(`WebMQ benchmark: ${record.scenario}`, [
    `<header><h1>WebMQ benchmark: ${escapeHtml(record.scenario)}</h1>` +
      `<p class="soft">${escapeHtml(timeText(record.machine.startedAt))} · ${escapeHtml(machineLine(record))}</p>` +
      '<nav><a href="#outcome">Outcome</a> <a href="#plots">Plots</a> <a href="#table">Table</a> <a href="#made">How it was made</a></nav></header>',
    '<main>',
    outcomeSection(record),
    plotsSection(record, plan, names, lookOf),
    tableSection(record),
    environmentSection(record),
    '</main>',
    '<footer><p>Ratios between rows of one page hold; figures of different machines do not compare.</p></footer>',
  ])
}

function plotsSection(record: ResultRecord, plan: PlotPlan, names: readonly string[], lookOf: LookOf): string {
  const groups = plan.facets.flatMap((facet) => {
    // A single bar compares nothing; the table is shorter.
    const isSingle = plan.x === null && facet.rows.length < 2
    const metrics = isSingle ? [] : plan.metrics.map((column) => metricFigure(plan, facet, column, lookOf))
    const distributions = plan.distributions.flatMap((one) => distributionFigures(plan, facet, one, lookOf))
    return [group(facet.name, metrics), group(distributionsTitle(facet.name), distributions)]
  })
  const timelines = group('Over time', timelineFigures(record, lookOf))
  const content = [...groups, timelines].join('')
  const plots = content === '' ? '' : `${legend(names, lookOf)}${content}`
  // Before the legend: their lines have names of their own.
  const runs = group(
    '',
    (record.timelines ?? []).map((one) => figure(escapeHtml(one.title), timelineSvg(one))),
  )
  return plots + runs === '' ? '' : `<section id="plots"><h2>Plots</h2>${runs}${plots}</section>`
}

function distributionsTitle(facetName: string): string {
  return facetName === '' ? 'Percentiles' : `Percentiles, ${facetName}`
}

function group(title: string, figures: readonly string[]): string {
  if (figures.length === 0) return ''
  return `${title === '' ? '' : `<h3>${escapeHtml(title)}</h3>`}<div class="plots">${figures.join('\n')}</div>`
}

function legend(names: readonly string[], lookOf: LookOf): string {
  const items = names.map((name) => {
    const look = lookOf(name)
    const swatch =
      `<svg class="${lookClass(look)}" viewBox="0 0 26 12" aria-hidden="true"><path class="line" d="M1 6H25"/>` +
      `<path class="mark" transform="translate(13 6)" d="${markerPath(look)}"/></svg>`
    return `<li>${swatch}${escapeHtml(name)}</li>`
  })
  return `<ul class="legend">${items.join('')}</ul>`
}

function tableSection({ columns, identity, rows, runs }: ResultRecord): string {
  if (runs.length <= rows.length) {
    return `<section id="table"><h2>Table</h2>${htmlTable({ columns, identity, rows })}</section>`
  }
  const explanation = 'Medians of the repeats; below each, half the distance between smallest and largest.'
  const repeat = { key: 'repeat', title: 'Repeat', unit: '', format: 'count' } as const
  const every = htmlTable({
    columns: [repeat, ...columns.filter(({ key }) => key !== repeat.key)],
    identity,
    rows: runs,
  })
  return (
    `<section id="table"><h2>Table</h2><p class="soft">${explanation}</p>${htmlTable({ columns, identity, rows })}` +
    `<details><summary>Every single measurement (${runs.length})</summary>${every}</details></section>`
  )
}

/** `2026-03-01T12:00:00.000Z` in a short form. */
function timeText(iso: string): string {
  return iso.replace('T', ' ').replace(/:\d\d(\.\d+)?Z$/, ' UTC')
}
