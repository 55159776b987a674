// What measured loads took, for docs/operations.md: each cell is one of a table's file, or that divided or multiplied.
import { formatCell } from '../dist/report/format-cell.js'

const NOTHING = '–'
const count = (value) => formatCell(Math.round(value), 'count')
const cores = (value) => (value < 0.1 ? value.toFixed(2) : value.toFixed(1))
const bytes = (value) => formatCell(value, 'bytes')
const inUs = (value) => value / 1_000_000

const native = (ratePerSecond) => ({ target: 'webmq-native', ratePerSecond })
const paced = (ratePerSecond) => ({
  load: `${count(ratePerSecond)} messages/s, each to all`,
  table: 'paced',
  where: native(ratePerSecond),
  cells: (row) => [count(1_000), count(row.deliveriesPerSecond), cores(row.serverCpuShare), NOTHING, NOTHING],
})
const logged = (target) => ({
  load: `as many logged messages as ${target} takes, two nodes`,
  table: 'logged-messages',
  where: { target },
  cells: (row) => {
    const coresOf = (costUs) => cores(row.acceptedPerSecond * inUs(costUs))
    const nodes = [row.publisherCpuUs, row.followerCpuUs].map(coresOf).join(' + ')
    return [NOTHING, count(row.acceptedPerSecond), nodes, NOTHING, `${target}: ${coresOf(row.brokerCpuUs)}`]
  },
})

const LOADS = [
  {
    load: 'idle, three nodes, as many as fit',
    table: 'the-most-connections',
    where: {},
    cells: (row) => [count(row.maxConnections), NOTHING, NOTHING, bytes(row.serverRssBytes), NOTHING],
  },
  {
    load: 'idle, each pings every 5 s',
    table: 'hold',
    where: { subscribers: 10_000 },
    cells: (row) => [count(row.subscribers), NOTHING, cores(row.serverCpuShare), NOTHING, NOTHING],
  },
  ...[100, 1_000, 16_000].map(paced),
  ...['redis', 'nats', 'rabbitmq'].map(logged),
]

export const SIZING_TITLES = [
  'Load',
  'Connections',
  'Delivered or logged/s',
  'Cores of nodes',
  'Memory',
  'Broker, cores',
  'From',
]

/** @param {ReadonlyMap<string, import('./figures.mjs').Figures>} tables @returns {string[][]} a row per load that was measured */
export function sizingRows(tables) {
  return LOADS.flatMap(({ load, table, where, cells }) => {
    const fits = (row) => Object.entries(where).every(([key, value]) => row[key] === value)
    const row = tables.get(table)?.rows.find(fits)
    return row === undefined ? [] : [[load, ...cells(row), table]]
  })
}
