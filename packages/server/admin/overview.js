import { askJson } from './api.js'
import { createCharts } from './charts.js'
import { age, count, element, fillTable, short } from './elements.js'

/** How the nodes are: in numbers, in plots and one by one. @param onNodes Gets the names of the nodes. */
export function createOverview(onNodes) {
  const charts = createCharts()

  return {
    async refresh() {
      const { nodes, missing } = await askJson('/api/info')
      onNodes([...nodes.map(({ node }) => node), ...missing])
      charts.add(nodes)
      showTotals(nodes, missing)
      showNodes(nodes, missing)
    },
  }
}

function showTotals(nodes, missing) {
  const known = (name) => nodes.map((node) => node[name]).filter((value) => value !== undefined)
  const total = (name) => known(name).reduce((sum, value) => sum + value, 0)
  const bad = (value) => [count(value), value > 0]
  const brokerStatus = nodes.find((node) => node.brokerStatus !== 'up')?.brokerStatus ?? 'up'
  const totals = {
    nodes: [
      missing.length === 0 ? count(nodes.length) : `${nodes.length} of ${nodes.length + missing.length}`,
      missing.length > 0,
    ],
    broker: [brokerStatus, brokerStatus !== 'up'],
    connections: [count(total('connections'))],
    'received per s': [count(total('receivedPerSecond'))],
    'sent per s': [count(total('sentPerSecond'))],
    'recoveries since start': [count(total('recovered'))],
    'gaps since start': [count(total('gaps'))],
    'refusals since start': [count(total('refused'))],
    'slow consumers': bad(total('slowConsumers')),
    'nodes with other options': bad(Math.max(0, ...known('differentPeers'))),
  }
  const tiles = Object.entries(totals).map(([name, [text, isBad]]) => {
    const tile = document.createElement('div')
    tile.append(element('dt', name), element('dd', text, isBad ? 'bad' : ''))
    return tile
  })
  document.querySelector('#totals').replaceChildren(...tiles)
}

const NAMES = [
  'node',
  'version',
  'status',
  'up',
  'connections',
  'patterns',
  'received/s',
  'sent/s',
  'CPU',
  'memory',
  'event loop',
  'broker',
]

function showNodes(nodes, missing) {
  const rows = nodes.map((node) => [
    node.node,
    node.version,
    node.status,
    age(node.uptimeMs),
    count(node.connections),
    count(node.patterns),
    count(node.receivedPerSecond),
    count(node.sentPerSecond),
    told(node.cpu, (cores) => `${short(cores * 100)} %`),
    told(node.memoryBytes, (bytes) => `${count(bytes / 1024 ** 2)} MiB`),
    told(node.eventLoopDelayMs, (ms) => `${short(ms)} ms`),
    `${node.broker} ${node.brokerStatus}${told(node.brokerMs, (ms) => `, ${short(ms)} ms`, '')}`,
  ])
  const silent = missing.map((name) => [name, '', 'does not answer', ...new Array(NAMES.length - 3).fill('')])
  fillTable(document.querySelector('#nodes table'), NAMES, [...rows, ...silent])
}

/** What a node of an older version does not tell has no text. */
function told(value, toText, otherwise = '–') {
  return value === undefined ? otherwise : toText(value)
}
