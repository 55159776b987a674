// The first table of docs/comparison.md: what clients of each system miss when networks drop, and in a deploy.
import { formatCell } from '../dist/report/format-cell.js'

const NOTHING = '–'
const SYSTEMS = [
  ['webmq', 'WebMQ'],
  ['centrifugo', 'Centrifugo'],
  ['socketio', 'Socket.IO'],
  ['uws', 'uWebSockets.js alone'],
]
/** Title, table, column. Of several rows of a system, the one with the fewest clients: all systems have that one. */
const COLUMNS = [
  ['clients, networks drop', 'jitter', 'subscribers'],
  ['delivered', 'jitter', 'deliveredRatio'],
  ['lost, nothing said', 'jitter', 'gapCount'],
  ['false recovered', 'jitter', 'falseRecoveredCount'],
  ['clients, deploy', 'avalanche', 'subscribers'],
  ['delivered', 'avalanche', 'deliveredRatio'],
  ['lost, nothing said', 'avalanche', 'gapCount'],
  ['doubled', 'avalanche', 'duplicateCount'],
  ['longest away', 'avalanche', 'awayMs.max'],
  ['bystander p99', 'avalanche', 'latencyMs.p99'],
]

export const DROP_TITLES = ['system', ...COLUMNS.map(([title]) => title)]

/** A row for each system. @param {ReadonlyMap<string, import('./figures.mjs').Figures>} tables */
export function dropRows(tables) {
  return SYSTEMS.map(([target, name]) => [
    name,
    ...COLUMNS.map(([, table, key]) => {
      const figures = tables.get(table)
      const rows = figures?.rows.filter((row) => row.target === target) ?? []
      const [row] = rows.toSorted((one, other) => one.subscribers - other.subscribers)
      const column = figures?.columns.find((one) => one.key === key)
      return row === undefined || column === undefined ? NOTHING : formatCell(row[key], column.format)
    }),
  ])
}
