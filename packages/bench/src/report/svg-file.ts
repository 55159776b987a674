import { RunError } from '../exit-codes.js'
import type { ResultRecord, ResultRow } from '../results/result.js'
import { machineLine } from './environment.js'
import { axisLabel } from './format-cell.js'
import { escapeHtml } from './html-escape.js'
import { metricSvg } from './html-plots.js'
import { planPlots } from './plot-plan.js'
import { timelineSvg } from './svg-timeline.js'

/** The cost of a delivery compares best; scenarios without it show their first plotted figure. */
const MAIN_METRIC = 'deliveriesPerServerCpuSecond'

// Units of the drawing; the plot inside is scaled to the width.
const WIDTH = 720
const HEAD = 48
const FOOT = 30

/** The picture has its own background, so it is readable on light and dark pages. */
const STYLE = `
:root{--card:#fff;--ink:#17170f;--soft:#5b5a55;--faint:#8b8a84;--line:#e3e2dc;
--s0:#2a78d6;--s1:#e06522;--s2:#128a5e;--s3:#c78500;--s4:#4a3aa7;--s5:#d23f3e;--s6:#c9548a;--s7:#5b5a55}
@media(prefers-color-scheme:dark){:root{--card:#1c1c1a;--ink:#f2f1ec;--soft:#bdbcb4;--faint:#8f8e87;--line:#34342f;
--s0:#5b9ff0;--s1:#f08445;--s2:#35b583;--s3:#dba21f;--s4:#a79cf5;--s5:#ee7574;--s6:#e489b3;--s7:#b0afa7}}
text{font:12px system-ui,sans-serif;fill:var(--soft)}
text.head{font-size:18px;font-weight:600;fill:var(--ink)}text.foot{font-size:11px}
text.value{fill:var(--ink)}.ground{fill:var(--card)}
.band{fill:var(--ink);opacity:.07}.timeline text{paint-order:stroke;stroke:var(--card);stroke-width:3}
.grid{stroke:var(--line)}.axis{stroke:var(--faint);fill:none}
.line{fill:none;stroke:currentColor;stroke-width:2}.mark{fill:currentColor;stroke:var(--card)}
.spread{stroke:currentColor;stroke-width:5;opacity:.3;fill:none}.spread.ends{stroke:var(--ink);stroke-width:1.5;opacity:.7}
.bar{fill:currentColor;stroke:currentColor}.bar.doubt{fill:var(--card);stroke-dasharray:4 2}
.s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}
.s4{color:var(--s4)}.s5{color:var(--s5)}.s6{color:var(--s6)}.s7{color:var(--s7)}
`.trim()

/**
 * The main plot of a result, its timelines where it has any, as a self-contained picture for a README, with the command that made it.
 * @throws {RunError} when the result has nothing to plot.
 */
export function svgText(record: ResultRecord): string {
  const { timelines = [] } = record
  if (timelines.length > 0) {
    const plots = timelines.map((one) => ({ title: one.title, plot: timelineSvg(one) }))
    return svgPicture(plots, machineLine(record), record.command)
  }
  const plan = planPlots(record)
  const column = plan.metrics.find(({ key }) => key === MAIN_METRIC) ?? plan.metrics[0]
  const [facet] = plan.facets
  if (column === undefined || facet === undefined) throw new RunError('--svg: the result has nothing to plot')
  const lookOf = (name: string) => Math.max(0, plan.seriesNames.indexOf(name))
  // What a delivery costs is the server's own figure, even where the generator decides the rate.
  const rows = column.key === MAIN_METRIC ? facet.rows.map(withoutGeneratorDoubt) : facet.rows
  const plot = metricSvg(plan, { ...facet, rows }, column, lookOf)
  const title = `${axisLabel(column)}${facet.name === '' ? '' : `, ${facet.name}`}`
  return svgPicture([{ title, plot }], machineLine(record), record.command)
}

/** A plot and its heading. */
interface TitledPlot {
  readonly title: string
  /** An `svg` element with a `viewBox` from 0 0. */
  readonly plot: string
}

/** Plots below each other as a self-contained picture. */
function svgPicture(plots: readonly TitledPlot[], foot: string, command: string): string {
  let y = 0
  const parts = plots.map(({ title, plot }) => {
    const [, plotWidth = '', plotHeight = ''] = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(plot) ?? []
    const height = Math.round((Number(plotHeight) / Number(plotWidth)) * WIDTH)
    const part =
      `<text class="head" x="24" y="${y + HEAD - 16}">${escapeHtml(title)}</text>` +
      plot.replace('<svg ', `<svg x="0" y="${y + HEAD}" width="${WIDTH}" height="${height}" `)
    y += HEAD + height
    return part
  })
  const label = plots.map(({ title }) => title).join('; ')
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + FOOT}" role="img" aria-label="${escapeHtml(label)}">` +
    `<style>${STYLE}</style><rect class="ground" width="100%" height="100%" rx="8"/>${parts.join('')}` +
    `<text class="foot" x="24" y="${y + 18}">${escapeHtml(foot)}</text>` +
    `<desc>${escapeHtml(command)}</desc></svg>\n`
  )
}

function withoutGeneratorDoubt(row: ResultRow): ResultRow {
  return row.verdict === 'generator saturated' ? { ...row, verdict: 'ok' } : row
}
