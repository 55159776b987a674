import { age, element, offer } from './elements.js'
import { Plot } from './plot.js'
import { Samples } from './samples.js'

const COLORS = 6
/** More nodes than this would be a thicket, and slow to draw. */
const MAX_LINES = 12

/**
 * What is plotted. A plot has a line for each node or, with `sums`, one for each of these, over the chosen nodes. Its
 * scale ends at `least` or above.
 */
const PLOTS = [
  { id: 'received', title: 'Received', unit: 'messages per s' },
  { id: 'sent', title: 'Sent', unit: 'messages per s' },
  { id: 'connections-open', metric: 'connections', title: 'Connections', unit: 'open' },
  { id: 'cpu', title: 'CPU', unit: '% of a core' },
  { id: 'memory', title: 'Memory', unit: 'MiB' },
  { id: 'event-loop', metric: 'eventLoop', title: 'Event loop', unit: 'longest delay, ms' },
  { id: 'broker', title: 'Broker', unit: 'ms until it accepts, mean', least: 0.1 },
  {
    id: 'recoveries',
    title: 'Reconnects',
    unit: 'listens per s',
    sums: { recovered: ['recovered', 'line-good'], gaps: ['gap', 'line-bad'] },
  },
  { id: 'refused', title: 'Refusals', unit: 'per s', sums: { refused: ['all', 'line-0'] } },
]

/** Plots of what the page has seen. */
export function createCharts() {
  const section = document.querySelector('#load')
  const choice = section.querySelector('select')
  const samples = new Samples()
  const openedMs = Date.now()
  const plots = PLOTS.map((spec) => ({ spec, plot: new Plot(spec, point) }))
  section.querySelector('.plots').append(...plots.map(({ plot }) => plot.element))
  choice.onchange = draw

  function point(ms) {
    for (const { plot } of plots) plot.cursorMs = ms
  }

  function draw() {
    const all = samples.nodes
    const shown = choice.value === 'all' ? all : [choice.value]
    const colorOf = (node) => `line-${all.indexOf(node) % COLORS}`
    const lines = shown.slice(0, MAX_LINES)
    const legend = lines.map((node) => element('li', node, `swatch ${colorOf(node)}`))
    if (lines.length < shown.length) legend.push(element('li', `and ${shown.length - lines.length} more: choose one`))
    section.querySelector('.legend').replaceChildren(...legend)
    for (const { spec, plot } of plots) {
      const metric = spec.metric ?? spec.id
      plot.show(
        spec.sums === undefined
          ? lines.map((node) => lineOf(node, colorOf(node), ({ nodes }) => nodes[node]?.[metric]))
          : Object.entries(spec.sums).map(([name, [text, className]]) => ({
              ...lineOf(text, className, ({ nodes }) => sumOf(shown.map((node) => nodes[node]?.[name]))),
              isNamed: true,
            })),
      )
    }
    const opened = new Date(openedMs).toLocaleTimeString('en-GB')
    section.querySelector('#since').textContent =
      `${opened}, ${age(Date.now() - openedMs)} ago. The page keeps 30 minutes; Prometheus can read more at /metrics.`
  }

  function lineOf(name, className, read) {
    return { name, className, points: samples.all.map((sample) => [sample.atMs, read(sample)]) }
  }

  return {
    add(nodes) {
      samples.add(nodes)
      offer(choice, samples.nodes)
      draw()
    },
  }
}

/** `undefined` where none is known. */
function sumOf(values) {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0)
}
