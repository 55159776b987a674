import { column, faults, VERDICT_COLUMN } from '../../results/columns.js'
import type { ResultColumn, ResultRow } from '../../results/result.js'
import type { Rows } from '../../trials/row-scenario.js'

export const EVERYDAY_COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('mode', 'Broker', 'text'),
  column('subscribers', 'Clients', 'count'),
  column('backends', 'Nodes', 'count'),
  { ...column('serverCpuUsPerDelivery', 'Server CPU per delivery, µs', 'number', 'lower'), unit: 'us' },
  column('byHandRatio', 'By hand', 'ratio', 'lower'),
  column('latencyMs.p50', 'p50', 'ms', 'lower'),
  column('latencyMs.p99', 'p99', 'ms', 'lower'),
  column('deliveriesPerSecond', 'Deliveries/s', 'rate', 'higher'),
  { ...column('deliveredRatio', 'Delivered', 'percent', 'higher'), repeats: 'min' },
  { ...column('acknowledgedRatio', 'Acknowledged', 'percent', 'higher'), repeats: 'min' },
  faults('publishErrorCount', 'Refused'),
  column('brokerCpuSeconds', 'Broker CPU', 'seconds', 'lower'),
  column('generatorCpuSeconds', 'Generator CPU', 'seconds'),
  VERDICT_COLUMN,
]
export const EVERYDAY_IDENTITY: readonly string[] = ['target', 'mode', 'subscribers', 'backends']

/** A mesh by hand knows no keys of others: every node sends every message to all. */
const MESH_NOTE =
  'mesh by hand: a TCP connection to every other node, which gets every message and answers with a count'

/** Names rows by server and broker, and divides WebMQ's cost by that of the server by hand over the same broker. */
export function besideByHand({ rows, runs, ...rest }: Rows): Rows {
  const named = rows.map(nameRow)
  const servers = Object.entries(rest.versions ?? {}).filter(([target]) => nameOf(target).target === 'by-hand')
  const notes = [
    ...(named.some(({ target, mode }) => target === 'by-hand' && mode === 'mesh') ? [MESH_NOTE] : []),
    ...new Set(servers.map(([, version]) => `by hand: ${version}`)),
  ]
  return {
    ...rest,
    rows: named.map((row) => {
      const byHand = named.find(({ target, mode }) => target === 'by-hand' && mode === row.mode)
      const [own, theirs] = [row.serverCpuUsPerDelivery, byHand?.serverCpuUsPerDelivery]
      const isMeasured = row !== byHand && typeof own === 'number' && typeof theirs === 'number'
      return { ...row, byHandRatio: isMeasured ? own / theirs : null }
    }),
    runs: runs.map(nameRow),
    notes,
  }
}

/** From `webmq-native+redis`: the names that `fanout` has, too. */
function nameRow(row: ResultRow): ResultRow {
  return { ...row, ...nameOf(row.target) }
}

function nameOf(name: string): Pick<ResultRow, 'target' | 'mode'> {
  const [target = '', mode = 'memory'] = name.split('+')
  return { target, mode }
}
